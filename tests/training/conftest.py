"""Lets these tests share one toy task."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """The children these tests fork must not meet a pool of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
