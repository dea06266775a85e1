"""``regard evaluate``: messages besides the scores."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS
from regard.data.corpora.documents import open_documents
from regard.tasks.classification.classifier import ClassEvaluation
from regard.tasks.language.generator import Perplexity
from regard.tasks.metrics.bleu import score
from regard.tasks.metrics.labels import class_scores, label_scores, number_scores, tag_scores
from regard.tasks.protocols import Divide


class Echo:
    """A task whose translation of a text is the text."""

    info = TASKS["translation"]
    assets = SimpleNamespace(languages=None)

    def between(self, from_, to):
        return self

    def evaluate(self, sources, references, beam=None, lowercase=False, divide=None):
        return score(sources, references, lowercase=lowercase, samples=1)


def test_lines_that_are_not_utf8_are_named_with_their_file(tmp_path: Path, regard, loaded) -> None:
    loaded(Echo())
    (tmp_path / "a").write_bytes(b"one small house stands\n\xff two\n")
    (tmp_path / "b").write_bytes(b"one small house stands\ntwo\n")
    done = regard("evaluate", "model", "--source", tmp_path / "a", "--reference", tmp_path / "b").succeeds()
    assert f"{tmp_path / 'a'}: 1 line was not valid UTF-8 and had bytes replaced: 2" in done.err
    assert str(tmp_path / "b") not in done.err
    assert done.out.startswith("BLEU")


class Scored:
    """A task whose evaluation is given."""

    def __init__(self, name: str, found: Any) -> None:
        self.info, self.found = TASKS[name], found
        self.asked: list[Any] = []

    def evaluate(self, corpus: Any, *others: Any, divide: Divide) -> Any:
        assert divide(lambda some, begin: [begin, *some], [1, 2]) == [0, 1, 2]
        self.asked += [list(corpus.examples()), *others]
        return self.found


def test_a_classifiers_scores(tmp_path: Path, regard, loaded) -> None:
    scores = class_scores([0, 1, 2, 1, 0], [0, 1, 1, 1, 1], ["a", "b", "c\x1b"])
    task = Scored("classification", ClassEvaluation(scores, 0.125, None, {"c\x1b": 1}, 2, 3))
    loaded(task)
    (tmp_path / "t.csv").write_bytes(b"text,label\nthe cat,a\n\xff,b\n")
    done = regard("evaluate", "model", "--test", tmp_path / "t.csv", "--threshold", "0.5").succeeds()
    assert task.asked == [[("the cat", "a"), ("\ufffd", "b")], 0.5]
    for said in ("accuracy 60.00  (3 of 5)", "macro F1", "calibration error 0.125", "2 have no label", "3 are empty"):
        assert said in done.out
    assert "taken for another most often" in done.out
    assert "\x1b" not in done.out
    assert "1 line was not valid UTF-8 and had bytes replaced: 3" in done.err
    values = json.loads(regard("evaluate", "model", "--test", tmp_path / "t.csv", "--json").out)
    assert (values["accuracy"], values["unlabelled"], values["empty"]) == (60, 2, 3)


def test_scores_of_several_labels_and_of_numbers(tmp_path: Path, regard, loaded) -> None:
    (tmp_path / "t.csv").write_text("the cat,1\n")
    several = label_scores([[True, False], [True, True]], [[True, False], [False, True]], ["a", "b"])
    numbers = number_scores([1, 2, 4], [1, 2, 3])
    for scores, said in ((several, ("all labels right 50.00", "label")), (numbers, ("correlation", "(3 texts)"))):
        loaded(Scored("classification", ClassEvaluation(scores, None, None, {}, 0)))
        done = regard("evaluate", "model", "--test", tmp_path / "t.csv")
        assert all(one in done.out for one in said), done.out


def test_a_taggers_scores(tmp_path: Path, regard, loaded) -> None:
    (tmp_path / "t.conll").write_text("Anna\tB-PER\nsees\tO\n")
    spans = tag_scores([["B-PER", "O"]], [["B-PER", "B-LOC"]], "bio", [["Anna", "sees"]])
    loaded(Scored("tagging", spans))
    done = regard("evaluate", "model", "--test", tmp_path / "t.conll")
    assert "F1 66.67  (precision 50.00, recall 100.00)" in done.out
    assert "accuracy of tags 50.00  (2 words)" in done.out
    loaded(Scored("tagging", tag_scores([["NOUN", "VERB"]], [["NOUN", "NOUN"]], "none")))
    assert regard("evaluate", "model", "--test", tmp_path / "t.conll").out == "accuracy of tags 50.00  (2 words)\n"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("unit", ["file", "paragraph", "line"])
def test_a_language_models_perplexity_is_of_whole_documents(tmp_path: Path, regard, loaded, unit: str) -> None:
    text = "the cat\n\n" + "old dogs sleep " * 100_000 + "\n\n\nend"
    (tmp_path / "t.txt").write_text(text)
    seen: list[Any] = []

    def perplexity(texts: list[str], stride: int | None, divide: Divide) -> Perplexity:
        assert divide(lambda some, begin: [begin, *some], [1]) == [0, 1]
        seen.extend([texts, stride])
        return Perplexity(math.log(8) * 10, 10, 5, 40)

    recipe = SimpleNamespace(data=SimpleNamespace(documents=unit))
    loaded(SimpleNamespace(info=TASKS["language-model"], recipe=recipe, perplexity=perplexity))
    done = regard("evaluate", "model", "--test", tmp_path / "t.txt", "--stride", 7).succeeds()
    assert len(list(open_documents(tmp_path / "t.txt", unit).examples())) > len(seen[0])  # long ones come in parts
    assert len(seen[0]) == {"file": 1, "paragraph": 3, "line": 3}[unit]
    assert " ".join(seen[0]).split() == text.split()
    assert seen[1] == 7
    assert "perplexity of a token 8.00  (10 tokens, 2.0794 nats each)" in done.out
    assert "perplexity of a word 64.00" in done.out
    assert "bits a byte 0.7500" in done.out
    (tmp_path / "e.txt").write_text("\n\n")
    assert "there is no text" in regard("evaluate", "model", "--test", tmp_path / "e.txt").err


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("classification", ["--source", "a", "--reference", "b"], "--source: is not for a text classifier"),
        ("classification", ["--test", "t.csv", "--beam", "3"], "--beam: is not for a text classifier"),
        ("tagging", ["--test", "t.csv", "--threshold", "0"], "--threshold: is not for a tagger"),
        ("language-model", ["--test", "t.csv", "--lowercase"], "--lowercase: is not for a language model"),
        ("translation", ["--test", "t.csv"], "--test: is not for a translator"),
        ("encoding", ["--test", "t.csv"], "is a text encoder; use regard encode"),
        ("masked-lm", ["--test", "t.csv", "--stride", "3"], "--stride: is not for a masked language model"),
        ("masked-lm", ["--test", "t.csv", "--beam", "3"], "--beam: is not for a masked language model"),
        ("classification", ["--test", "."], ".: is a folder; a file is needed"),
        ("classification", ["--test", "absent.csv"], "absent.csv: no such file"),
        ("classification", ["--test", "t.csv", "--test", "t.csv"], "score them one by one"),
        ("classification", ["--test", "t.csv", "--threshold", "2"], "is no probability"),
        ("translation", ["--source", "a"], "--reference is missing"),
        ("translation", [], "--test FILE, or of a translator"),
    ],
)
def test_options_of_another_task_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, regard, loaded, name: str, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n")
    loaded(Scored(name, None))
    regard("evaluate", "model", *words).refuses(said)
