"""What Dask leaves behind is cleared away here, not in the middle of somebody else's test."""

import gc
import warnings

import pytest


@pytest.fixture(autouse=True)
def sockets_are_collected_here():
    """Connections to schedulers that are not there leave sockets to the garbage collector, which warns of them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
