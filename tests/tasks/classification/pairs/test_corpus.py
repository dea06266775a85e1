"""Labelled pairs are read from every form, and joined so that both texts keep their share of the room."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.data.checks.labels import check_labels
from regard.data.corpora.corpus import TextPair
from regard.data.prepare.encoders import LabelIds, RefusedExample
from regard.data.prepare.windowing import Frame
from regard.system.errors import RegardError, UsageError
from regard.tasks.classification.pairs.corpus import (
    LabelledPair,
    LabelledPairEncoder,
    join_pieces,
    kept_pieces,
    open_labelled_pairs,
)
from tests.refusals import refused
from tests.tasks.small_tasks import tokenizer

PAIRS = [LabelledPair(TextPair("a cat", "the cat"), "yes"), LabelledPair(TextPair("a dog", "no, a cow"), "no")]


def json_lines(*keys: str) -> str:
    return "".join(json.dumps(dict(zip(keys, (*texts, label), strict=True))) + "\n" for texts, label in PAIRS)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("p.tsv", "a cat\tthe cat\tyes\na dog\tno, a cow\tno\n", None),
        ("p.tsv", "label\thypothesis\tpremise\nyes\tthe cat\ta cat\nno\tno, a cow\ta dog\n", None),
        ("p.csv", 'a cat,the cat,yes\na dog,"no, a cow",no\n', None),
        ("p.csv", 'l,b,a\nyes,the cat,a cat\nno,"no, a cow",a dog\n', "a,b,l"),
        ("p.txt", "yes\ta cat\tthe cat\nno\ta dog\tno, a cow\n", "2,3,1"),
        (
            "p.jsonl",
            "".join(json.dumps({"sentence1": a, "sentence2": b, "label": c}) + "\n" for (a, b), c in PAIRS),
            None,
        ),
        ("p.jsonl", json_lines("x", "y", "z"), "x,y,z"),
    ],
)
def test_every_form(tmp_path: Path, name: str, content: str, columns: str | None) -> None:
    (tmp_path / name).write_text(content)
    corpus = open_labelled_pairs(tmp_path / name, columns)
    assert list(corpus.examples()) == PAIRS
    first = 2 if content.startswith("l") else 1
    assert [corpus.where(number) for number in (0, 1)] == [f"{tmp_path / name}:{first + number}" for number in (0, 1)]


@pytest.mark.parametrize(
    ("name", "content", "columns", "error", "where"),
    [
        ("p.tsv", "a\tb\n", None, RegardError, "p.tsv:1"),
        ("p.tsv", "a\tb\tc\na\tb\n", None, RegardError, "p.tsv:2"),
        ("p.jsonl", '{"text": "a"}\n', None, RegardError, "p.jsonl:1"),
        ("p.jsonl", '{"premise": 1, "hypothesis": "a", "label": "b"}\n', None, RegardError, "p.jsonl:1"),
        ("p.txt", "a\tb\tc\n", None, UsageError, "p.txt"),
        ("p.tsv", "a\tb\tc\n", "1,2", UsageError, "--columns"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, content, columns, error, where) -> None:
    (tmp_path / name).write_text(content)
    with refused(error, where):
        list(open_labelled_pairs(tmp_path / name, columns).examples())


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(3, 3, (3, 3)), (20, 2, (5, 2)), (2, 20, (2, 5)), (20, 20, (4, 3)), (0, 9, (0, 7))]
)
def test_the_longer_text_is_cut(first: int, second: int, kept: tuple[int, int]) -> None:
    frame = Frame((9,), 0, 10)
    assert kept_pieces(frame, first, second) == kept
    joined = join_pieces(frame, np.full(first, 1), np.full(second, 2))
    assert joined.tolist() == [9, *[1] * kept[0], 0, *[2] * kept[1], 0]
    with refused(RegardError, "data.max_tokens"):
        kept_pieces(Frame((9,), 0, 4), 1, 1)


def test_pairs_without_a_text_or_a_label_are_left_out() -> None:
    pieces = tokenizer()
    encoder = LabelledPairEncoder(pieces, Frame.of(pieces, 32), LabelIds("single", ("no", "yes")))
    examples = [*PAIRS, LabelledPair(TextPair("a", " "), "yes"), LabelledPair(TextPair("a", "b"), "")]
    one, other, empty, bare = encoder.encode(examples, "train")
    assert (empty, bare) == (RefusedExample("empty"), RefusedExample("no label"))
    for found, label in ((one, 1), (other, 0)):
        ((ids, labels),) = found  # type: ignore[misc]
        assert labels.tolist() == [label]
        assert (ids == pieces.end).sum() == 2


def test_a_pair_that_will_be_cut_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    good = [f"the cat {number}\tthe dog {number}\t{'xy'[number % 2]}\n" for number in range(40)]
    path.write_text("".join([*good, f"{'a b ' * 250_000}\tthe dog\tx\n"]))
    (finding,) = check_labels([open_labelled_pairs(path)]).findings
    assert (finding.kind, finding.severity, finding.count) == ("too long", "note", 1)
    assert [line for _, line, _ in finding.examples] == [41]
    path.write_text("".join(good))
    assert check_labels([open_labelled_pairs(path)]).findings == ()
