"""A text between its symbols, and in windows where it is long: every piece is read, none twice without need."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from regard.data.prepare.windowing import Frame


@given(
    pieces=some.integers(0, 300), longest=some.integers(2, 60), stride=some.integers(1, 80), begin=some.integers(0, 2)
)
def test_windows_cover_a_text(pieces: int, longest: int, stride: int, begin: int) -> None:
    frame = Frame(tuple(range(900, 900 + begin)), 999, longest, stride)
    ids = np.arange(pieces)
    windows = list(frame.windows(ids))
    seen: set[int] = set()
    for number, window in enumerate(windows):
        assert tuple(window.ids[:begin]) == frame.begin
        assert window.ids[-1] == 999
        inner = window.ids[begin:-1]
        assert inner.tolist() == ids[window.start : window.start + frame.room].tolist()
        assert len(window.ids) <= max(longest, begin + 2)
        assert not number or window.start > windows[number - 1].start
        seen |= set(inner.tolist())
    assert seen == set(range(pieces))
    assert len(windows) == 1 or pieces > frame.room
    assert frame.join([window.ids for window in windows]).tolist() == ids.tolist()


def test_neighbours_share_the_stride_and_the_last_window_is_full() -> None:
    frame = Frame((7,), 0, 12, 4)
    assert frame.room == 10
    assert [frame.starts(pieces) for pieces in (10, 23, 22)] == [[0], [0, 6, 12, 13], [0, 6, 12]]
    assert [len(window.ids) for window in frame.windows(np.arange(23))] == [12] * 4
    assert Frame((), 0, 11, 64).starts(20) == [0, 5, 10]  # a stride too wide for a window is halved
    assert Frame((), 0, 2, 64).starts(3) == [0, 1, 2]
    (window,) = Frame((7, 8), 0, 12).windows(np.zeros(0, np.int64))
    assert window.ids.tolist() == [7, 8, 0]


def test_the_frame_of_a_tokenizer() -> None:
    assert Frame.of(SimpleNamespace(begin=(3,), end=0), 20) == Frame((3,), 0, 20, 64)  # type: ignore[arg-type]
