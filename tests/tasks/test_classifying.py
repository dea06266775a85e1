"""Classifiers in the making: what they learn, what is fitted at the end, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.data.corpora import Corpus
from regard.data.labelled import labelled
from regard.errors import RegardError
from small_classifiers import WORDS, rows, taught, written


def labels_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "labels.json").read_text())
    return found


def test_labels_are_learned_and_kept_in_order(tmp_path: Path) -> None:
    model = taught(tmp_path / "model", written(tmp_path / "a.csv", rows(200)))
    assert model.assets.labels == tuple(sorted(WORDS))
    assert labels_of(tmp_path / "model")["labels"] == sorted(WORDS)
    result = model.evaluate(corpus(tmp_path / "b.csv", rows(80, seed=9)))
    assert result.scores.accuracy > 95
    card = (tmp_path / "model" / "card.md").read_text()
    assert "180 texts to learn from, 20 to validate on, 3 labels" in card


def corpus(path: Path, pairs: list[tuple[str, str]]) -> Corpus:
    return labelled(written(path, pairs))


def test_the_threshold_is_chosen_on_texts_that_belong_to_no_class(tmp_path: Path) -> None:
    pairs = rows(200) + [
        (f"{one} {other} key", "none") for one in "door shoe pen".split() for other in "lamp hat".split()
    ]
    valid = [*rows(30, seed=3), ("door lamp key", "none"), ("shoe hat key", "none"), ("pen hat key", "none")]
    options = {"valid": written(tmp_path / "v.csv", valid)}
    given = written(tmp_path / "a.csv", pairs)
    model = taught(tmp_path / "model", given, "classification.out_of_scope=none", **options)
    assert model.assets.labels == tuple(sorted(WORDS))
    assert 0 < model.assets.fitted.threshold < 1
    assert model.classify("door lamp key").label == "none"
    assert model.classify("my bread soup").label == "food"
    assert "out of scope below probability" in (tmp_path / "model" / "card.md").read_text()
    scope = model.evaluate(corpus(tmp_path / "b.csv", valid)).scope
    assert scope is not None
    assert scope.recall > 60
    assert scope.in_scope_accuracy > 80
    plain = taught(tmp_path / "plain", given, **options)
    assert plain.assets.fitted.threshold == 0
    assert "none" in plain.assets.labels


def test_a_threshold_of_the_recipe_is_kept(tmp_path: Path) -> None:
    pairs = rows(150)
    model = taught(tmp_path / "model", written(tmp_path / "a.csv", pairs), "classification.threshold=0.9")
    assert model.judge().threshold == 0.9


def test_probabilities_are_not_fitted_where_it_is_not_wished(tmp_path: Path) -> None:
    model = taught(
        tmp_path / "model", written(tmp_path / "a.csv", rows(120)), "classification.calibrate=false", steps=4
    )
    assert model.assets.fitted.temperature == 1


def test_balanced_weights_help_a_rare_label(tmp_path: Path) -> None:
    few = rows(20, seed=5, labels=("sky",))
    # a word of the rare label stands beside one of the frequent labels: only its weight decides
    pairs = rows(400, seed=6, labels=("food",)) + [(f"bread {text}", label) for text, label in few]
    given = written(tmp_path / "a.csv", pairs)
    found = []
    for weights in ("none", "balanced"):
        model = taught(tmp_path / weights, given, f"classification.class_weights={weights}", steps=12)
        scores = model.scores([f"bread {text}" for text, _ in rows(30, seed=8, labels=("sky",))])
        found.append(float((scores[:, 1] - scores[:, 0]).mean()))
    assert found[1] > found[0] + 0.5


def test_weights_of_classes_say_nothing_of_numbers(tmp_path: Path) -> None:
    pairs = [(text, str(len(text) / 10)) for text, _ in rows(80)]
    options = "classification.kind=regression", "classification.class_weights=balanced"
    model = taught(tmp_path / "model", written(tmp_path / "a.csv", pairs), *options, steps=3)
    assert isinstance(model.classify("my bread").value, float)


def test_several_windows_of_a_text_validate_each_by_itself(tmp_path: Path) -> None:
    long = [(" ".join([text] * 6), label) for text, label in rows(20, seed=2)]
    options = {"valid": written(tmp_path / "v.csv", long)}
    learned = rows(100) + [(" ".join([text] * 6), label) for text, label in rows(60, seed=4)]
    model = taught(tmp_path / "model", written(tmp_path / "a.csv", learned), **options)
    pieces = model.assets.tokenizer.ids_batch([text for text, _ in long])
    windows = sum(len(model.frame.starts(len(ids))) for ids in pieces)
    assert windows > 40
    assert f"{windows} to validate on" in (tmp_path / "model" / "card.md").read_text()
    result = model.evaluate(corpus(tmp_path / "b.csv", long))
    assert result.scores.texts == 20
    assert result.scores.accuracy > 90


@pytest.mark.parametrize(
    ("pairs", "settings", "said"),
    [
        ([("a", "x"), ("b", "none")] * 20, ("classification.out_of_scope=none",), "1 class is left"),
        ([(f"t{n}", "x") for n in range(40)], (), "nothing to tell apart"),
    ],
)
def test_one_class_is_nothing_to_learn(tmp_path: Path, pairs: Any, settings: Any, said: str) -> None:
    pairs = [(f"{text} {number}", label) for number, (text, label) in enumerate(pairs)]
    with pytest.raises(RegardError, match=said):
        taught(tmp_path / "model", written(tmp_path / "a.csv", pairs), *settings)


def test_it_can_be_validated_only_on_labels_that_are_learned(tmp_path: Path) -> None:
    valid = written(tmp_path / "v.csv", [("a new text", "other"), ("one more", "strange")])
    with pytest.raises(RegardError, match="none of the 2 has a label that anything is learned of"):
        taught(tmp_path / "model", written(tmp_path / "a.csv", rows(60)), valid=valid)


def test_a_label_that_only_validation_has_counts_nothing(tmp_path: Path) -> None:
    valid = rows(20, seed=3)
    given, scores = written(tmp_path / "a.csv", rows(150)), []
    for name, more in (("without", []), ("with", [("a new text", "strange")])):
        path = written(tmp_path / f"{name}.csv", valid + more)
        taught(tmp_path / name, given, valid=path)
        card = (tmp_path / name / "card.md").read_text()
        scores.append([line for line in card.splitlines() if line.startswith("* accuracy")])
    assert scores[0] == scores[1]


def test_half_a_model_is_no_beginning(tmp_path: Path) -> None:
    given = written(tmp_path / "a.csv", rows(80))
    taught(tmp_path / "first", given, steps=2)
    begun = {"start_from": tmp_path / "first", "steps": 2}
    taught(tmp_path / "same", given, **begun)
    for setting, name in (("model.d_ff=48", "feedforward"), ("model.layers=2", r"layers\.1\.")):
        with pytest.raises(RegardError, match=f"does not fit the model to be trained, which has another .*{name}"):
            taught(tmp_path / "other", given, setting, **begun)
    assert regard.load(tmp_path / "same", device="cpu").recipe.model.d_ff == 64
