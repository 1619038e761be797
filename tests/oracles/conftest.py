"""Sixty digits for the oracles."""

import mpmath
import pytest


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mpmath.workdps(60):
        yield
