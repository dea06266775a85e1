"""Windows belong to examples: what is written is read again, whatever comes together."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.data.prepare.windowing import DocumentIndex, DocumentIndexWriter


@pytest.mark.parametrize("parts", [[[1, 3, 2], [1], [], [4]], [[1, 1]], [[], []]])
def test_windows_follow_each_other_example_by_example(tmp_path: Path, parts: list[list[int]]) -> None:
    writer = DocumentIndexWriter(tmp_path, "train.wholes")
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
        writer = DocumentIndexWriter(tmp_path, name)
        writer.add(counts)
        writer.close()
        assert DocumentIndex(tmp_path / name).format_count("texts") == said
