"""The page: explain, calibrate, audit and compare in a browser, on this machine only unless told otherwise.

Needs ``whosin[web]``; imported by ``whosin serve`` alone. The parts are imported by name, so that the process of an
audit (:mod:`whosin.web.worker`) does not load the server's.
"""
