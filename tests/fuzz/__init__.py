"""Fuzzing: bytes in, and only the documented errors out.

``targets`` says what is tried, ``__main__`` drives it with atheris, guided by coverage, and ``test_targets`` with
hypothesis in the ordinary tests.
"""
