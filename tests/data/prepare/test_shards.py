import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.prepare.shards import DocumentIndex, OffsetsWriter, Shards, SideWriter, ragged_indices


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=20))
def test_ragged_is_the_runs_end_to_end(runs: list[tuple[int, int]]) -> None:
    starts = np.array([run[0] for run in runs], dtype=np.int64)
    lengths = np.array([run[1] for run in runs], dtype=np.int64)
    expected = [place for start, length in runs for place in range(start, start + length)]
    assert ragged_indices(starts, lengths).tolist() == expected


@pytest.mark.parametrize("file_tokens", [1, 7, 1 << 28])
@pytest.mark.parametrize("pieces", [65_536, 65_537])
def test_what_was_written_is_gathered(tmp_path: Path, file_tokens: int, pieces: int) -> None:
    draws = np.random.default_rng(1)
    sentences = [draws.integers(0, pieces, draws.integers(1, 9)) for _ in range(60)]
    sentences[0][0] = pieces - 1
    writer = SideWriter(tmp_path, "train.source", pieces, file_tokens)
    for begin in range(0, 60, 7):
        writer.add(sentences[begin : begin + 7])
    entry, files = writer.close()
    assert set(files) == {path.name for path in tmp_path.iterdir()}
    assert entry["type"] == ("<u2" if pieces == 65_536 else "<u4")  # two bytes where they can
    assert len(files) == {1: 10, 7: 10, 1 << 28: 2}[file_tokens]
    side = Shards(tmp_path, entry)
    assert (side.count, side.tokens) == (60, sum(map(len, sentences)))
    assert side.longest == max(map(len, sentences))
    for chosen in (np.arange(60), draws.permutation(60)[:13], np.array([5]), np.array([2, 2])):
        ids_T, lengths_B = side.gather(0, chosen)
        assert ids_T.tolist() == np.concatenate([sentences[i] for i in chosen]).tolist()
        assert lengths_B.tolist() == side.lengths(3, chosen).tolist() == [len(sentences[i]) for i in chosen]
    assert side.sentence(4).tolist() == sentences[4].tolist()


@pytest.mark.parametrize("parts", [[[1, 3, 2], [1], [], [4]], [[1, 1]], [[], []]])
def test_windows_follow_each_other_example_by_example(tmp_path: Path, parts: list[list[int]]) -> None:
    writer = OffsetsWriter(tmp_path, "train.wholes")
    for part in parts:
        writer.add(part)
    name, files = writer.close()
    counts = [count for part in parts for count in part]
    assert files[name]["bytes"] == (tmp_path / name).stat().st_size == 8 * (len(counts) + 1)
    json.dumps(files)
    found = DocumentIndex(tmp_path / name)
    assert found.count == len(counts)
    assert found.windows_B.tolist() == counts
    every = [window for number in range(found.count) for window in found.windows(number).tolist()]
    assert every == list(range(sum(counts)))
    assert found.first_B.tolist() == (np.cumsum(counts) - counts).tolist()


def test_windows_are_counted_where_there_are_more(tmp_path: Path) -> None:
    for name, counts, said in (("a", [1, 1], "2 texts"), ("b", [1, 1200], "2 texts (1,201 windows)")):
        writer = OffsetsWriter(tmp_path, name)
        writer.add(counts)
        writer.close()
        assert DocumentIndex(tmp_path / name).format_count("texts") == said
