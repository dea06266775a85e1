"""Parallel text in its forms; whatever is wrong is said with file and line."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from regard.data.corpora.pairs import PairJsonLines, PairTable, Subset, TwoFiles, open_pairs, uniform_hash
from regard.system.errors import RegardError, UsageError
from tests.data.corpora.packed import write
from tests.refusals import refused

PAIRS = [("a cat", "eine Katze"), ("", "leer"), ("two", "zwei")]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_every_form_gives_the_same_pairs_as_often_as_asked(tmp_path: Path, ending: str) -> None:
    source = write(tmp_path / f"a.en{ending}", "".join(f"{pair[0]}\n" for pair in PAIRS))
    target = write(tmp_path / f"a.de{ending}", "".join(f"{pair[1]}\r\n" for pair in PAIRS))
    table = write(tmp_path / f"a.tsv{ending}", "".join(f"x\t{pair[1]}\t{pair[0]}\n" for pair in PAIRS))
    rows = [json.dumps({"en": pair[0], "de": pair[1]}) for pair in PAIRS]
    json_lines = write(tmp_path / f"a.jsonl{ending}", "\n".join(rows))
    found = [open_pairs(source, target), open_pairs(table, columns=(3, 2)), open_pairs(json_lines, keys=("en", "de"))]
    assert [type(one) for one in found] == [TwoFiles, PairTable, PairJsonLines]
    for one in found:
        assert list(one.examples()) == list(one.examples()) == PAIRS
    assert found[0].where(1, 1) == f"{target}:2"
    assert found[1].where(1, 1) == f"{table}:2"


def test_line_breaks_and_surrogates_in_json_are_mended(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"source": "a\\r\\nb", "target": "\\ud83d\\ude00 \\udc00"}\n')
    assert list(open_pairs(path).examples()) == [("a b", "😀 \ufffd")]


def test_bad_json_is_said_with_its_line(tmp_path: Path) -> None:
    lost = '{"sorce": "a", "target": "b"}', ("'source'", "'sorce', 'target'")
    for line, holds in (lost, ('{"source": 1, "target": "b"}', ("'source'",))):
        path = write(tmp_path / "a.jsonl", '{"source": "a", "target": "b"}\n' + line + "\n")
        with refused(RegardError, f"{path}:2", *holds):
            list(open_pairs(path).examples())


def test_bad_tables_and_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\nonly one\n")
    with refused(RegardError, f"{path}:2", "1"):
        list(open_pairs(path).examples())
    with refused(UsageError, path, "1", "0"):
        list(open_pairs(path, columns=(0, 1)).examples())
    with refused(UsageError, tmp_path / "train.en", ".tsv"):
        open_pairs(tmp_path / "train.en")


def test_of_a_wide_table_two_columns_are_to_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "package\ttitle\ta\tx\n")
    with refused(UsageError, path, "has 4 columns", "columns='3,4'"):
        list(open_pairs(path).examples())
    assert list(open_pairs(path, columns=(3, 4)).examples()) == [("a", "x")]
    assert list(open_pairs(path, columns=(1, 2)).examples()) == [("package", "title")]
    with_origin = write(tmp_path / "b.tsv", "a\tx\tCC BY 2.0\n")
    assert list(open_pairs(with_origin).examples()) == [("a", "x")]


@pytest.fixture
def corpus(tmp_path: Path) -> TwoFiles:
    numbers = [*range(2000), *range(50)]  # the first fifty twice
    (tmp_path / "a.en").write_text("".join(f"sentence {i}\n" for i in numbers))
    (tmp_path / "a.de").write_text("".join(f"Satz {i}\n" for i in numbers))
    return TwoFiles(tmp_path / "a.en", tmp_path / "a.de")


def test_about_as_many_as_asked_in_order_and_the_same_again(corpus: TwoFiles) -> None:
    for share in (0.125, 0.25, 0.5):
        part = Subset(corpus, share, 1)
        kept = list(part.examples())
        assert kept == [pair for pair in corpus.examples() if uniform_hash(pair, 1) < share]
        assert abs(len(kept) - share * 2050) < 4 * (2050 * share * (1 - share)) ** 0.5
        assert kept == list(part.examples())


def test_smaller_shares_are_parts_of_larger_ones_and_seeds_differ(corpus: TwoFiles) -> None:
    kept = [set(Subset(corpus, share, 1).examples()) for share in (0.125, 0.25, 0.5, 1)]
    assert all(small < large for small, large in pairwise(kept))
    assert kept[-1] == set(corpus.examples())
    other = set(Subset(corpus, 0.25, 2).examples())
    assert 0.1 < len(other & kept[1]) / len(other) < 0.4  # a quarter by chance
    again = list(Subset(corpus, 0.5, 3).examples())  # equal pairs stay together
    assert all(again.count((f"sentence {i}", f"Satz {i}")) in (0, 2) for i in range(50))


def test_places_are_those_of_the_files(corpus: TwoFiles) -> None:
    part = Subset(corpus, 0.25, 1)
    for number, (source, _) in enumerate(part.examples()):
        line = int(part.where(number, 0).rpartition(":")[2])
        assert corpus.source.read_text().splitlines()[line - 1] == source
    other = part.examples()
    next(other)  # a second pass, left half-way
    assert part.where(5, 1).startswith(str(corpus.target))
    assert part.name == f"0.25 of {corpus.name}"
    assert part.notes == corpus.notes
    for share in (0, -1, 1.5, float("nan")):
        with refused(UsageError, "fraction"):
            Subset(corpus, share, 1)
