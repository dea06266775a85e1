"""The token budget against a memory of known size, and the measures of this machine."""

import pytest
import torch

from regard.training.measure import _container, fit_batch_to_memory, free_memory, keep_pages, peak_memory
from tests.training.toy import in_child


@pytest.mark.parametrize("free", [10**3, 10**5, 10**6, 10**9])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_batch_fits_and_the_update_keeps_its_tokens(free, accumulate):
    asked = []

    def needed(tokens):
        asked.append(tokens)
        return 100 * tokens

    tokens, times = fit_batch_to_memory(8192, accumulate, 256, needed, free)
    assert tokens * times >= 8192 * accumulate
    assert tokens * times < 8192 * accumulate + 64 * times
    assert 100 * tokens <= 0.8 * free or tokens == 256
    assert tokens == 8192 or 100 * 2 * tokens > 0.8 * free  # no smaller than needed
    assert asked == [1024]
    assert fit_batch_to_memory(1024, 2, 256, lambda tokens: None, 10) == (1024, 2)  # not measured, nothing changes
    assert fit_batch_to_memory(1024, 2, 256, lambda tokens: 10**12, None) == (1024, 2)


def test_this_machines_peak_is_not_hidden_by_pages_kept():
    device = torch.device("cpu")
    free = free_memory(device)
    if free is None or peak_memory(lambda: None, device) is None:
        pytest.skip("needs a processor's /proc to measure memory")
    assert free > 10**8

    def measured():
        assert 60_000_000 < peak_memory(lambda: torch.ones(16_000_000).sum(), device) < 150_000_000

    def kept():
        keep_pages()
        for _ in range(3):
            measured()

    measured()
    assert in_child(kept) == 0  # in a process of its own, for it changes how memory is kept


def test_a_container_leaves_what_it_does_not_use(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("600\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 250\n")
    assert _container(tmp_path) == [1000 - 600 + 250, None]
    (tmp_path / "memory.max").write_text("max\n")
    assert _container(tmp_path) == [None, None]
