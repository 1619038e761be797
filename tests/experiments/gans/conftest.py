"""One thread, so that reruns are the same to the last bit."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Let torch use one thread during a test."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
