"""Fuzzing: bytes in, and only the documented errors out.

``targets`` says what is tried, room by room (``tables``, ``stored``, ``promises``, ``measurements``, ``trainings``,
``records``, ``pages``, ``commands``). ``__main__`` drives it with atheris, guided by coverage, and ``test_targets``
with hypothesis in the ordinary tests. What was found and mended stands in ``test_findings``.
"""
