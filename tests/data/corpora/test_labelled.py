"""Labelled texts in each of their forms; a header is recognised by its names only, and no line is lost."""

import csv
import io
import json
from pathlib import Path

import pytest

from regard.data.corpora.labelled import join_labels, open_labelled, parse_number, split_labels
from regard.data.corpora.pairs import open_pairs
from regard.data.corpora.tagged import open_tagged
from regard.system.errors import RegardError, UsageError
from tests.data.corpora.packed import write
from tests.refusals import refused

ROWS = [("a film, and a good one", "1"), ('he said "no" twice', "0"), ("two\nlines", "1"), ("Grüße 😀", "0")]
PAIRS = [(text.replace("\n", " "), label) for text, label in ROWS]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_every_form_gives_the_same_pairs_as_often_as_asked(tmp_path: Path, ending: str) -> None:
    held = io.StringIO()
    csv.writer(held).writerows([("Label", " TEXT"), *[row[::-1] for row in ROWS]])
    table = write(tmp_path / f"a.csv{ending}", held.getvalue())
    rows = [json.dumps({"id": 3, "text": text, "label": int(label)}) for text, label in ROWS]
    objects = write(tmp_path / f"a.jsonl{ending}", "\n".join(rows))
    tabs = write(tmp_path / f"a.tsv{ending}", "".join(f"{label}\tx\t{text}\r\n" for text, label in PAIRS))
    words = write(tmp_path / f"a.txt{ending}", "".join(f"{label} {text}\n" for text, label in PAIRS))
    found = [*map(open_labelled, (table, objects)), open_labelled(tabs, "3,1"), open_labelled(words, "label text")]
    kinds = ["LabelledCsv", "LabelledJsonLines", "LabelledTsv", "FirstWordLabels"]
    assert [type(one).__name__ for one in found] == kinds
    for one in found:
        assert list(one.examples()) == list(one.examples()) == PAIRS
    assert [one.where(3) for one in found] == [f"{table}:6", f"{objects}:4", f"{tabs}:4", f"{words}:4"]


HEADERS = [
    ("text\tlabel\na\tx\n", None, [("a", "x")]),
    ("\ufeffLABEL\tid\tSentence\nx\t1\ta\n", None, [("a", "x")]),
    ("utterance\tintent\na\tx\n", None, [("a", "x")]),
    ("text\tstars\na\tx\n", None, [("text", "stars"), ("a", "x")]),
    ("a\tx\nb\ty\n", None, [("a", "x"), ("b", "y")]),
    ("x\ta\ny\tb\n", "2,1", [("a", "x"), ("b", "y")]),
    ("label\ttext\nx\ta\n", "2,1", [("a", "x")]),
    ("title\ttext\tlabel\nt\ta\tx\n", None, [("a", "x")]),
    ("title\ttext\tstars\nt\ta\tx\n", "Title, stars", [("t", "x")]),
    ("text\tstars\na\tx\n", "1,stars", [("a", "x")]),
    ("a\tx\n\n  \nb\t y \n", None, [("a", "x"), ("b", "y")]),
    ("\tx\na\t\n", None, [("", "x"), ("a", "")]),
    ("", None, []),
]


@pytest.mark.parametrize(("text", "columns", "expected"), HEADERS)
def test_a_header_is_known_by_its_names_only(tmp_path: Path, text: str, columns: str | None, expected) -> None:
    assert list(open_labelled(write(tmp_path / "a.tsv", text), columns).examples()) == expected


def test_the_line_of_a_record_is_the_one_it_begins_in(tmp_path: Path) -> None:
    corpus = open_labelled(write(tmp_path / "a.csv", 'text,label\n"a\nb\nc",x\n\nd,y\n"e\nf",z\n'))
    assert [text for text, _ in corpus.examples()] == ["a b c", "d", "e f"]
    assert [corpus.where(number) for number in range(3)] == [f"{corpus.name}:{line}" for line in (2, 6, 7)]


WRONG = [
    ("a.tsv", "a\tx\nb\n", None, 2, ("1 column", "2")),
    ("a.tsv", "a\tx\nb\ty\tz\n", None, 2, ("3", "2")),
    ("a.tsv", "a\tx\n", "3,1", 1, ("2", "3")),
    ("a.tsv", "a\tx\n", "text,label", 1, ("'text'", "'a', 'x'")),
    ("a.csv", "a,x\nb, c,y\n", None, 2, ("3", "2")),
    ("a.csv", "a;x\n", None, 1, ("1 column", "2")),
    ("a.csv", 'a,x\n"b,y\nc,z\n', None, 2, ()),
    ("a.csv", 'a,x\n"b\n" c,y\nc,z\n', None, 2, ("3",)),
    ("a.csv", 'a,x\n"b" c,y\nc,z\n', None, 2, ()),
    ("a.csv", 'a,x\n"' + "b\n" * 100_000, None, 2, ()),
    ("a.jsonl", '{"text": "a", "label": 1}\n{\n', None, 2, ()),
    ("a.jsonl", "[1]\n", None, 1, ()),
    ("a.jsonl", '{"words": "a", "label": 1}\n', None, 1, ("'text'", "'words', 'label'")),
    ("a.jsonl", '{"text": "a", "stars": 1}\n', None, 1, ("'label'",)),
    ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "a"}\n', None, 2, ("'label'",)),
    ("a.jsonl", '{"text": 3, "label": 1}\n', None, 1, ("'text'",)),
    ("a.jsonl", '{"text": "a", "label": {}}\n', None, 1, ("'label'",)),
    ("a.jsonl", '{"text": "a", "label": ["b|c"]}\n', None, 1, ("'b|c'",)),
    ("a.txt", "x a\ny\n", "label text", 2, ()),
    ("a.txt", "x:y a\ny b\n", "label:fine text", 2, ("'y'",)),
]


@pytest.mark.parametrize(("name", "text", "columns", "line", "holds"), WRONG)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, name: str, text: str, columns, line: int, holds) -> None:
    path = write(tmp_path / name, text)
    with refused(RegardError, f"{path}:{line}", *holds):
        list(open_labelled(path, columns).examples())


def test_labels_of_json_are_written_as_text_and_keys_are_chosen(tmp_path: Path) -> None:
    labels = [1, 0.5, True, None, " x\ny ", ["a", "b c"], []]
    rows = "".join(json.dumps({"Question": "q", "Classes": label}) + "\n" for label in labels)
    corpus = open_labelled(write(tmp_path / "a.jsonl", rows))
    assert [label for _, label in corpus.examples()] == ["1", "0.5", "true", "", "x y", "a|b c", ""]
    path = write(tmp_path / "a.jsonl", '{"text": "a", "label": "x", "body": "b\\r\\nc", "stars": 5}\n')
    assert list(open_labelled(path, "body,stars").examples()) == [("b c", "5")]


def test_a_label_may_end_at_its_colon(tmp_path: Path) -> None:
    path = write(tmp_path / "a.label", "NUM:dist How far: is it ?\n\nLOC:city  Where ?\n")
    texts = ["How far: is it ?", "Where ?"]
    for columns, labels in (("label text", ["NUM:dist", "LOC:city"]), ("label:fine text", ["NUM", "LOC"])):
        assert list(open_labelled(path, columns).examples()) == list(zip(texts, labels, strict=True))


def test_a_form_nobody_knows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a\tx\n")
    with refused(UsageError, path, "columns='label text'"):
        open_labelled(path)
    assert list(open_labelled(path, "1,2").examples()) == [("a", "x")]
    for columns in ("text", "1,2,3", "1,", "text label"):
        with refused(UsageError, "columns", columns):
            open_labelled(path, columns)
    with refused(UsageError, "columns", "1", "0"):
        list(open_labelled(path, "0,1").examples())


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.conll", "a.conllu", "pairs.tsv"])
def test_lines_that_end_with_lone_carriage_returns_are_told_how_to_convert(tmp_path: Path, name: str) -> None:
    opened = open_tagged if "conll" in name else open_pairs if "pairs" in name else open_labelled
    path = write(tmp_path / name, "a b\tx\rc d\ty\r\re f\tz\r".replace("\t", "," if "csv" in name else "\t"))
    with refused(RegardError, f"{path}:1", r"tr '\r' '\n'"):
        list(opened(path).examples())


def test_cells_may_be_long_and_hold_invalid_bytes_but_no_bare_carriage_return(tmp_path: Path) -> None:
    path, text = tmp_path / "a.csv", "x" * 200_000
    assert list(open_labelled(write(path, f'"{text}",a\n')).examples()) == [(text, "a")]
    with refused(RegardError, f"{path}:2", r"tr '\r' '\n'"):
        list(open_labelled(write(path, "a,x\nb\rc,y\n")).examples())
    path.write_bytes(b"ok,1\nf\xfcr,2\n")
    corpus = open_labelled(path)
    assert list(corpus.examples()) == [("ok", "1"), ("f\ufffdr", "2")]
    assert [notes.invalid_lines for notes in corpus.notes] == [[2]]


def test_labels_are_split_as_they_were_joined() -> None:
    assert split_labels(join_labels(["a", " b c ", "d"])) == ["a", "b c", "d"]
    assert split_labels("") == split_labels(" | ") == []
    assert split_labels("b|a|b") == ["b", "a"]
    assert join_labels([]) == ""
    for labels in (["a|b"], ["a", " "]):
        with pytest.raises(ValueError):
            join_labels(labels)


def test_numbers() -> None:
    assert [parse_number(label) for label in ("3", " -1.5e3 ", "0")] == [3.0, -1500.0, 0.0]
    refused_labels = ("", "x", "1,5", "nan", "inf", "1_000", "3.5e38", "-1e300")
    assert [parse_number(label) for label in refused_labels] == [None] * 8


@pytest.mark.parametrize(
    ("text", "holds"), [("[\n{}\n]", "JSONL"), ('{"a": ' + "1" * 5000 + "}", "digits"), ("[" * 100_000, "nested")]
)
def test_json_that_python_cannot_read_is_named_in_plain_words(tmp_path: Path, text: str, holds: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with refused(RegardError, "a.jsonl:1", holds):
        list(open_labelled(tmp_path / "a.jsonl").examples())
