import numpy as np

from regard.system.memory import lazy_pages


def test_lazy_pages_are_zeros_that_can_be_written() -> None:
    numbers = np.frombuffer(lazy_pages(1 << 20), np.float32)
    assert not numbers.any()
    numbers[-1] = 1
    assert numbers.sum() == 1
