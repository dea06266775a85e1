"""A pair is two segments of one sequence, read from every form, in training, in use and on the page."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.data.batches.batch import pack_sources
from regard.data.checks.labels import check_labels
from regard.data.corpora.corpus import TextPair
from regard.data.prepare.encoders import RefusedExample
from regard.data.prepare.windowing import Frame, LabelIds
from regard.inspection.forward.record import record, text_inputs
from regard.models.inputs import separate, tokens
from regard.system.errors import RegardError, UsageError
from regard.tasks.classification import pairs as of_pairs
from regard.tasks.classification.classifier import NOTHING
from regard.tasks.classification.pairs import LabelledPair, join_pieces, kept_pieces, open_labelled_pairs
from tests.refusals import refused
from tests.tasks.small_tasks import pairs, tokenizer

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
        ("p.jsonl", json_lines("sentence1", "sentence2", "label"), None),
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
        ("p.tsv", "a\tb\tc\n", "1,2", UsageError, "columns"),
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
    encoder = of_pairs.LabelledPairEncoder(pieces, Frame.of(pieces, 32), LabelIds("single", ("no", "yes")))
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


@pytest.fixture(scope="module")
def task() -> Any:
    return pairs()


def test_the_second_text_is_another_segment() -> None:
    given = tokens(pack_sources([np.array([7, 3, 0, 4, 4, 0]), np.array([7, 0, 0]), np.array([7, 5, 0, 6, 0])]))
    assert separate(given, 0).segments_T.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1]  # type: ignore[union-attr]


def test_scores_are_those_of_the_model_with_segments(task: Any) -> None:
    ids = [task.assets.tokenizer.ids_batch([text])[0] for text in ("The animal", "was tired")]
    joined = join_pieces(task.frame, *ids)
    segments = np.arange(len(joined)) > len(ids[0]) + len(task.frame.begin)
    given = tokens(pack_sources([joined]))
    given = type(given)(given.ids_T, given.sequences, torch.from_numpy(segments.astype(np.int64)))
    with torch.inference_mode():
        expected = task.model(given).numpy()
    both = [("The animal", "was tired"), ("was tired", "The animal")]
    found = task.scores(both)
    np.testing.assert_allclose(found[:1], expected, atol=1e-6)
    assert not np.allclose(found[0], found[1])
    np.testing.assert_allclose(task.scores(["The animal\twas tired"]), expected, atol=1e-6)


def test_one_pair_or_several_as_texts_or_tuples(task: Any) -> None:
    one = task.classify("The animal [SEP] was tired")
    assert one == task.classify(("The animal", "was tired"))
    assert task.classify([("The animal", "was tired"), ("", "x")]) == [one, NOTHING]
    assert task.parse_line("a\tb", 1) == ("a", "b")
    assert task.parse_line(" ", 1) is None
    for wrong in ("one text", "a\tb\tc"):
        with refused(UsageError, "line 3"):
            task.parse_line(wrong, 3)
    with refused(UsageError, "text"):
        of_pairs.split_pair(("a", "b", "c"))  # type: ignore[arg-type]


def test_the_page_reads_what_the_model_reads(task: Any) -> None:
    text = "The animal [SEP] was too tired"
    seen = text_inputs(task, text)
    assert seen.source_text == text
    assert "".join(text[one.start : one.end] for one in seen.source) == "The animalwas too tired"
    hidden_TD = seen.run()
    with torch.inference_mode():
        score_BC = task.model.head(hidden_TD, task.pack(seen.read_ids).sequences)
    np.testing.assert_allclose(score_BC.numpy(), task.scores([text]), atol=1e-6)
    assert record(task, text).weights["encoder"][0].shape[1:] == (len(seen.source),) * 2


def write(path: Path, count: int, shift: int = 0) -> Path:
    words = "cat dog cow hen fox".split()
    rows = [(words[n % 5], words[n // 5 % 5]) for n in range(shift, shift + count)]
    path.write_text("".join(f"the {a} runs\tit is a {b} now\t{'same' if a == b else 'other'}\n" for a, b in rows))
    return path


def test_it_trains_to_the_same_bits_and_is_scored(tmp_path: Path) -> None:
    files = {"train": write(tmp_path / "a.tsv", 100), "valid": write(tmp_path / "v.tsv", 25, 7)}
    sizes = ["model.d_model=16", "model.d_ff=16", "model.heads=2", "model.layers=1", "text.vocabulary=300"]
    options: dict[str, Any] = {"task": "sentence-pairs", "settings": sizes, "threads": 1, **files}
    options |= {"despite_check": True, "quiet": True, "steps": 4}
    whole, again = (regard.train(output=tmp_path / name, **options) for name in ("whole", "again"))
    assert isinstance(whole, of_pairs.PairClassification)
    assert whole.recipe.model.segments == 2
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name]), name
    log = (tmp_path / "whole" / "training" / "metrics.jsonl").read_text()
    assert re.search(r'"the \w+ runs \[SEP\] it is a \w+ now"', log)  # a sample of a validation
    unseen = regard.load(tmp_path / "whole").unseen_words("the zebra runs [SEP] it is a cat")
    assert [(word.word, word.begin) for word in unseen] == [("zebra", 4)]
    found = whole.evaluate(open_labelled_pairs(files["valid"]))
    assert found.to_dict()["accuracy"] <= 100
    with refused(UsageError, "settings"):
        regard.train(output=tmp_path / "no", **{**options, "settings": [*sizes, "text.bpe_dropout=0.1"]})
