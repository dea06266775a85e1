"""Documents as windows: every token once an epoch, cut elsewhere in each, with its true predecessor."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches.language_modelling import FramedWindows, Windows
from regard.data.prepare.shards import Shards
from regard.data.prepare.windowing import Frame
from tests.data.batches.memory_sides import shards

NOTHING = 99


def documents(folder: Path, lengths: list[int], file_tokens: int = 1 << 20, end: int | None = None) -> Shards:
    """Documents whose tokens count up through all of them, from 100; or each with an end."""
    each = np.split(np.arange(100, 100 + sum(lengths)), np.cumsum(lengths)[:-1])
    each = each if end is None else [np.append(ids[:-1], end) for ids in each]
    return shards(folder, each, 1 << 16, file_tokens=file_tokens)


def taken(windows: Windows | FramedWindows, epoch: int) -> list[list[int]]:
    """Every window of an epoch, read one by one."""
    found = []
    for number in range(windows.count):
        ids, lengths = windows.gather(epoch, np.array([number]))
        assert lengths.tolist() == [len(ids)] == windows.lengths(epoch, np.array([number])).tolist()
        found.append(ids.tolist())
    return found


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 3), st.booleans())
def test_an_epoch_holds_every_token_once(tmp_path_factory, lengths, length, epoch, fixed) -> None:
    folder = tmp_path_factory.mktemp("shards")
    windows = Windows(documents(folder, lengths), length, None if fixed else 3)
    found = taken(windows, epoch)
    assert sorted(id for ids in found for id in ids) == list(range(100, 100 + sum(lengths)))
    assert max(map(len, found)) == windows.longest or not fixed
    assert max(map(len, found)) <= length
    assert windows.tokens == sum(lengths)
    together, each = windows.gather(epoch, np.arange(windows.count))
    assert together.tolist() == [id for ids in found for id in ids]
    assert each.tolist() == list(map(len, found))
    edges = np.cumsum([0, *lengths]) + 100
    for ids in filter(None, found):  # no window reaches into two documents
        assert np.searchsorted(edges, ids[0], "right") == np.searchsorted(edges, ids[-1], "right")


def test_a_document_that_fits_is_one_window_and_a_longer_one_is_cut(tmp_path: Path) -> None:
    windows = Windows(documents(tmp_path, [3, 7]), 3, None)
    assert taken(windows, 0) == taken(windows, 1) == [[100, 101, 102], [103, 104, 105], [106, 107, 108], [109]]


def test_epochs_are_cut_at_other_places_and_a_seed_always_at_the_same(tmp_path: Path) -> None:
    made = documents(tmp_path, [100])
    firsts = [[ids[0] for ids in taken(Windows(made, 10, 4), epoch) if ids] for epoch in range(40)]
    assert len({tuple(one) for one in firsts}) > 5  # of 10, each as likely in every epoch
    assert taken(Windows(made, 10, 4), 2) == taken(Windows(made, 10, 4), 2)
    lengths = [len(ids) for ids in taken(Windows(made, 10, 4), 0)]
    assert set(lengths[1:-1]) == {10}  # all but the first and the last are full


@pytest.mark.parametrize("file_tokens", [1 << 20, 8])
@pytest.mark.parametrize("seed", [None, 3])
def test_the_token_before_a_window_is_its_true_predecessor(tmp_path: Path, file_tokens: int, seed) -> None:
    made = documents(tmp_path, [1, 7, 20, 2, 9], file_tokens)
    windows = Windows(made, 4, seed)
    for epoch in range(4):
        for number, ids in enumerate(taken(windows, epoch)):
            before = windows.before(epoch, np.array([number]), NOTHING).tolist()
            if ids:
                assert before == [NOTHING if ids[0] == 100 else ids[0] - 1]


def test_before_a_document_stands_the_end_of_the_one_before(tmp_path: Path) -> None:
    windows = Windows(documents(tmp_path, [3, 5], end=0), 2, None)
    assert windows.before(0, np.arange(windows.count), 0).tolist() == [0, 101, 0, 104, 106]


def test_framed_windows_stand_between_their_symbols(tmp_path: Path) -> None:
    frame = Frame((7, 8), 9, max_tokens=6)
    made = documents(tmp_path, [2, 7])
    windows = FramedWindows(made, frame, None)
    assert taken(windows, 0) == [
        [7, 8, 100, 101, 9],
        [7, 8, 102, 103, 104, 9],
        [7, 8, 105, 106, 107, 9],
        [7, 8, 108, 9],
    ]
    assert windows.longest == 6
    assert windows.tokens == 9 + 3 * windows.count
    ids, lengths_B = windows.gather(0, np.arange(4))
    assert np.array_equal(windows.inner(lengths_B), ids >= 100)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(3, 9), st.integers(0, 3))
def test_framed_windows_hold_the_plain_ones(tmp_path_factory, lengths, max_tokens, epoch) -> None:
    made = documents(tmp_path_factory.mktemp("shards"), lengths)
    frame = Frame((7,), 9, max_tokens)
    framed, plain = FramedWindows(made, frame, 5), Windows(made, frame.room, 5)
    every = np.arange(framed.count)
    ids, lengths_B = framed.gather(epoch, every)
    assert ids[framed.inner(lengths_B)].tolist() == plain.gather(epoch, every)[0].tolist()
    assert framed.tokens == len(ids)
