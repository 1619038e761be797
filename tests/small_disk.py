"""A disk that is soon full, for tests."""

import contextlib

import pytest

__all__ = ["small_disk"]


@contextlib.contextmanager
def small_disk(size):
    """Let no file grow beyond this size; Python ignores the signal, so that writes fail."""
    resource = pytest.importorskip("resource", reason="POSIX limits")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
