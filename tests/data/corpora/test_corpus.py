"""Where a record stands in its file is known however records and lines go apart."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.data.corpora.corpus import LabelledText, RecordOffsets, Records, plain_name
from regard.text.lines import InvalidLines, lines


@dataclass
class EveryThird(Records[LabelledText]):
    """Every third line, to have records and lines apart."""

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, LabelledText]]:
        for number, line in enumerate(lines(self.path, notes), 1):
            if number % 3 == 0:
                yield number, LabelledText(line, "")


def test_places_are_those_noted() -> None:
    drawn = random.Random(1)
    places, line, expected = RecordOffsets(), 1, []
    for number in range(500):
        line += drawn.choice((1, 1, 1, 1, 2, 7))
        expected.append(line)
        places.note(number, line)
        places.note(number, -1)
    assert [places.line(number) for number in range(500)] == expected
    assert len(places._numbers) < 250


def test_where_is_known_before_during_and_after_a_pass(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{number}\n" for number in range(1, 31)), encoding="utf-8")
    corpus = EveryThird(path)
    assert corpus.where(4) == f"{path}:15"
    outer = corpus.examples()
    assert next(outer) == ("3", "")
    assert [text for text, _ in corpus.examples()] == [str(number) for number in range(3, 31, 3)]
    assert next(outer) == ("6", "")
    assert corpus.where(9) == f"{path}:30"
    assert corpus.where(10) == f"{path}:0"
    assert corpus.name == str(path)


@pytest.mark.parametrize(("name", "plain"), [("A.TSV.gz", "a.tsv"), ("a.csv", "a.csv"), ("b.conll.zst", "b.conll")])
def test_a_name_without_its_compression(name: str, plain: str) -> None:
    assert plain_name(Path("x") / name) == plain
