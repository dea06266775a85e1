"""Parallel text in its forms; whatever is wrong is said with file and line."""

import json
from pathlib import Path

import pytest

from regard.data.corpora.pairs import PairJsonLines, PairTable, TwoFiles, open_pairs
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


@pytest.mark.parametrize("counts", [(3, 5), (5, 3), (0, 1)])
def test_line_counts_that_differ_are_both_named(tmp_path: Path, counts: tuple[int, int]) -> None:
    source = write(tmp_path / "a.en", "x\n" * counts[0])
    target = write(tmp_path / "a.de", "y\n" * counts[1])
    with refused(RegardError, source, str(counts[0]), f"a.de has {counts[1]}"):
        list(open_pairs(source, target).examples())


def test_line_breaks_and_surrogates_in_json_are_mended(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"source": "a\\r\\nb", "target": "\\ud83d\\ude00 \\udc00"}\n')
    assert list(open_pairs(path).examples()) == [("a b", "😀 \ufffd")]


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("{", ()),
        ("[]", ()),
        ('{"sorce": "a", "target": "b"}', ("'source'", "'sorce', 'target'")),
        ('{"source": 1, "target": "b"}', ("'source'",)),
        ("[" * 100_000, ()),
    ],
)
def test_bad_json_is_said_with_its_line(tmp_path: Path, line: str, holds: tuple[str, ...]) -> None:
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
    with refused(UsageError, path, "has 4 columns", "--columns 3,4"):
        list(open_pairs(path).examples())
    assert list(open_pairs(path, columns=(3, 4)).examples()) == [("a", "x")]
    assert list(open_pairs(path, columns=(1, 2)).examples()) == [("package", "title")]
    with_origin = write(tmp_path / "b.tsv", "a\tx\tCC BY 2.0\n")
    assert list(open_pairs(with_origin).examples()) == [("a", "x")]


def test_invalid_bytes_are_noted_by_file(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", "a\nb\n"), tmp_path / "a.de"
    target.write_bytes(b"x\nf\xfcr\n")
    one = open_pairs(source, target)
    assert list(one.examples()) == [("a", "x"), ("b", "f\ufffdr")]
    assert [notes.invalid_lines for notes in one.notes] == [[], [2]]
