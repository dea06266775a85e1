"""Classifiers in the making: what they learn, what is fitted at the end, and what is refused."""

import json
import random
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

import regard
from regard.config import Classification as Section
from regard.data.checks.labels import LabelScan
from regard.data.corpora.corpus import Corpus, no_progress
from regard.data.corpora.labelled import open_labelled
from regard.data.corpora.scan import DataScan
from regard.system.errors import RegardError
from regard.tasks.classification import training
from regard.tasks.classification.training import ClassificationJob, ClassificationTraining
from regard.tasks.metrics.calibration import SCORES, acceptance_scores, choose_threshold, temperature
from regard.tasks.text.labels import FittedValues
from regard.tasks.training.base import ProductPaths
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import WORDS, rows, taught, written
from tests.tasks.training.moved import expect_adversarial
from tests.tasks.trials import evenly, shares


def corpus(path: Path, pairs: list[tuple[str, str]]) -> Corpus:
    return open_labelled(written(path, pairs))


def test_labels_are_learned_and_kept_in_order(tmp_path: Path) -> None:
    model = taught(tmp_path / "model", written(tmp_path / "a.csv", rows(200)))
    assert model.assets.labels == tuple(sorted(WORDS))
    assert json.loads((tmp_path / "model" / "labels.json").read_text())["labels"] == sorted(WORDS)
    result = model.evaluate(corpus(tmp_path / "b.csv", rows(80, seed=9)))
    assert result.scores.accuracy > 95
    card = (tmp_path / "model" / "card.md").read_text()
    assert "180 texts to learn from, 20 to validate on, 3 labels" in card


def test_the_threshold_is_chosen_on_texts_that_belong_to_no_class(tmp_path: Path) -> None:
    pairs = rows(200) + [(f"{one} key", "none") for one in ("door lamp", "door hat", "shoe lamp", "pen hat") * 2]
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


def test_what_the_recipe_says_is_not_fitted(tmp_path: Path) -> None:
    options = "classification.threshold=0.9", "classification.calibrate=false"
    model = taught(tmp_path / "model", written(tmp_path / "a.csv", rows(120)), *options, steps=4)
    assert (model.predictor().threshold, model.assets.fitted.temperature) == (0.9, 1)


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


def mixed(count: int, seed: int) -> list[tuple[str, str]]:
    """Long texts most of whose parts tell their label, others another one."""
    draw, parts, found = random.Random(seed), dict[str, list[str]](), []
    for text, label in rows(count * 3, seed):
        parts.setdefault(label, []).append(text)
    for _ in range(count):
        label = draw.choice(sorted(WORDS))
        others = draw.choices([text for some in parts.values() for text in some], k=draw.choice([0, 3, 5]))
        chosen = draw.choices(parts[label], k=4) + others
        found.append((" ".join(draw.sample(chosen, len(chosen))), label))
    return found


def teaching(task: Any, train: Path, valid: Path, folder: Path) -> ClassificationTraining:
    """The teaching of a task that is there, on these files."""
    scanned = DataScan.of([open_labelled(train)], open_labelled(valid), scan=LabelScan)
    job = ClassificationJob(task.recipe, scanned)
    return ClassificationTraining(task, job.prepare(folder, no_progress), ProductPaths())


@pytest.mark.parametrize("kind", ["single", "multi", "regression"])
def test_a_text_of_several_windows_is_validated_as_it_is_used(tmp_path: Path, kind: str) -> None:
    """By one verdict, from the mean of its windows' scores: validation, what is fitted, and the card."""
    numbers = {label: str(place / 2) for place, label in enumerate(sorted(WORDS))}
    sides = [rows(60) + mixed(40, 2), mixed(30, 3)]
    if kind == "regression":
        sides = [[(text, numbers[label]) for text, label in side] for side in sides]
    files = [written(tmp_path / f"{number}.csv", side) for number, side in enumerate(sides)]
    model = taught(tmp_path / "model", files[0], f"classification.kind={kind}", valid=files[1], steps=20)
    again = teaching(model, *files, tmp_path / "data")
    assert shares(again) == evenly(len(again.validation))
    assert (shares(again, True), again.final_seconds(2.0, 2.0)) == ([], 2.0)
    found, used = again.validate(True), model.evaluate(open_labelled(files[1]))
    expected = used.scores.to_dict()
    names = {"single": ["accuracy", "macro_f1"], "multi": ["micro", "exact"], "regression": ["pearson", "spearman"]}
    wanted = [one["f1"] if isinstance(one := expected[name], dict) else one for name in names[kind]]
    assert list(found.scores.values()) == pytest.approx(wanted, rel=1e-4)
    windows = [len(model.frame.starts(len(ids))) for ids in model.assets.tokenizer.ids_batch([t for t, _ in sides[1]])]
    assert min(windows) > 1
    card = (tmp_path / "model" / "card.md").read_text()
    assert f" windows), 30 to validate on ({sum(windows)} windows)" in card
    assert all(f"* {name} {value:.2f}" in card for name, value in found.scores.items())
    assert [sample.source.endswith(" …") for sample in found.samples] == [True] * 3
    chosen = [sides[1][place] for place in (0, 14, 29)]
    for sample, verdict, (_, gold) in zip(found.samples, model.classify([t for t, _ in chosen]), chosen, strict=True):
        assert sample.reference == (f"{float(gold):.3g}" if kind == "regression" else gold)
        said = f"{verdict.value:.3g}" if kind == "regression" else f"{verdict.label} {verdict.probability:.2f}"
        assert sample.hypothesis == said


def test_what_is_fitted_is_fitted_to_texts_not_to_their_windows(tmp_path: Path) -> None:
    valid = [*mixed(30, 3), *((" ".join(["door lamp key shoe"] * n), "none") for n in range(8, 16))]
    files = [written(tmp_path / "a.csv", rows(60) + mixed(40, 2)), written(tmp_path / "v.csv", valid)]
    model = taught(tmp_path / "model", files[0], "classification.out_of_scope=none", valid=files[1], steps=12)
    score_BC = model.scores([text for text, _ in valid])
    inside_B = np.array([label != "none" for _, label in valid])
    wanted_B = np.array([sorted(WORDS).index(label) if label != "none" else -1 for _, label in valid])
    warm = temperature(score_BC[inside_B], wanted_B[inside_B])
    assert model.assets.fitted.temperature == pytest.approx(warm, rel=1e-4)
    probability_BC = model.predictor().probabilities(score_BC)
    right_B = probability_BC.argmax(1) == wanted_B
    chosen = choose_threshold(probability_BC.max(1), right_B, ~inside_B)
    assert model.assets.fitted.threshold == pytest.approx(chosen.value, rel=1e-4)
    card = (tmp_path / "model" / "card.md").read_text()
    said = f"accuracy in scope {chosen.in_scope_accuracy:.2f}, recall out of scope {chosen.recall:.2f}"
    assert f"* out of scope below probability {chosen.value:.3f}, chosen by balanced: {said}" in card
    assert f"* accuracy {100 * right_B[inside_B].mean():.2f}\n" in card


def test_every_window_is_learned_from(tmp_path: Path) -> None:
    files = [written(tmp_path / "a.csv", mixed(40, 2)), written(tmp_path / "v.csv", rows(20, 3))]
    model = taught(tmp_path / "model", files[0], valid=files[1], steps=1)
    again = teaching(model, *files, tmp_path / "data")
    pieces = model.assets.tokenizer.ids_batch([text for text, _ in mixed(40, 2)])
    windows = sum(len(model.frame.starts(len(ids))) for ids in pieces)
    assert windows > 80
    assert again.examples.text.count == windows
    assert again.data_lines() == [f"40 texts to learn from ({windows} windows), 20 to validate on, 3 labels"]


def test_a_label_of_no_class_that_nothing_has_is_a_slip(tmp_path: Path) -> None:
    pairs = [*rows(60), *(("door lamp key", "skyy"),) * 2]
    given = written(tmp_path / "a.csv", pairs)
    with refused(RegardError, "classification.out_of_scope", "'skyyy'", "'skyy'"):
        taught(tmp_path / "model", given, "classification.out_of_scope=skyyy")
    valid = written(tmp_path / "v.csv", rows(20, 3))
    taught(tmp_path / "model", given, "classification.out_of_scope=skyy", valid=valid)
    card = (tmp_path / "model" / "card.md").read_text()
    assert "* out of scope 'skyy': nothing that is validated on has it, so no threshold was chosen" in card
    options = "classification.out_of_scope=nothing", "classification.threshold=0.7"
    model = taught(tmp_path / "asked", given, *options, steps=2)
    assert model.predictor().threshold == 0.7
    assert "below probability 0.700, as the recipe says" in (tmp_path / "asked" / "card.md").read_text()


def test_a_threshold_is_chosen_by_what_the_recipe_says(tmp_path: Path) -> None:
    valid = [*rows(12, seed=3), *((f"door lamp {word}", "none") for word in "a my big near see like the".split() * 4)]
    files = [written(tmp_path / "a.csv", rows(60)), written(tmp_path / "v.csv", valid)]
    for by in ("balanced", "accuracy", "f1"):
        options = "classification.out_of_scope=none", f"classification.threshold_by={by}"
        model = taught(tmp_path / by, files[0], *options, valid=files[1], steps=8)
        probability_BC = model.predictor().probabilities(model.scores([text for text, _ in valid]))
        outside_B = np.array([label == "none" for _, label in valid])
        right_B = np.array([sorted(WORDS)[one] for one in probability_BC.argmax(1)]) == [label for _, label in valid]
        every = acceptance_scores(probability_BC.max(1), right_B, outside_B, np.linspace(0, 1, 2001))
        chosen = np.array([model.predictor().threshold])
        (mine,) = SCORES[by](acceptance_scores(probability_BC.max(1), right_B, outside_B, chosen))
        assert mine >= SCORES[by](every).max() - 1e-9
        assert f"chosen by {by}" in (tmp_path / by / "card.md").read_text()
    assert get_args(Section.model_fields["threshold_by"].annotation) == tuple(SCORES)


@pytest.mark.parametrize(("other", "settings"), [("none", ("classification.out_of_scope=none",)), ("x", ())])
def test_one_class_is_nothing_to_learn(tmp_path: Path, other: str, settings: tuple[str, ...]) -> None:
    pairs = [(f"{'ab'[number % 2]} {number}", ("x", other)[number % 2]) for number in range(40)]
    with refused(RegardError):
        taught(tmp_path / "model", written(tmp_path / "a.csv", pairs), *settings)


def test_a_label_that_only_validation_has_counts_nothing_and_some_must_be_learned(tmp_path: Path) -> None:
    valid = rows(20, seed=3)
    given, scores = written(tmp_path / "a.csv", rows(150)), []
    with refused(RegardError, None, "2"):
        strange = written(tmp_path / "v.csv", [("a new text", "other"), ("one more", "strange")])
        taught(tmp_path / "model", given, valid=strange)
    for name, more in (("without", []), ("with", [("a new text", "strange")])):
        path = written(tmp_path / f"{name}.csv", valid + more)
        taught(tmp_path / name, given, valid=path)
        card = (tmp_path / name / "card.md").read_text()
        scores.append([line for line in card.splitlines() if line.startswith("* accuracy")])
    assert scores[0] == scores[1]


def test_the_recipe_of_a_model_begun_from_another_tells_how_its_text_is_cut(tmp_path: Path) -> None:
    given = written(tmp_path / "a.csv", rows(80))
    taught(tmp_path / "first", given, steps=1)
    (tmp_path / "trec.toml").write_text('task = "classification"\n[text]\nvocabulary = 4000\nlowercase = true\n')
    begun = {"start_from": tmp_path / "first", "recipe": tmp_path / "trec.toml"}
    regard.train(train=given, output=tmp_path / "second", steps=1, **begun)
    texts = [tomllib.loads((tmp_path / name / "recipe.toml").read_text())["text"] for name in ("first", "second")]
    for name in ("vocabulary", "units", "normalisation", "lowercase"):
        assert texts[0][name] == texts[1][name], name
    tokenizers = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("first", "second")]
    assert tokenizers[0] == tokenizers[1]


@pytest.mark.parametrize("kind", ["single", "multi", "regression"])
def test_the_loss_may_be_adversarial(tmp_path: Path, kind: str) -> None:
    numbers = {label: str(place / 2) for place, label in enumerate(sorted(WORDS))}
    side = [(text, numbers[label] if kind == "regression" else label) for text, label in rows(80)]
    file = written(tmp_path / "a.csv", side)
    task = taught(tmp_path / "model", file, f"classification.kind={kind}", "model.dropout=0", steps=4)
    again = teaching(task, file, file, tmp_path / "data")
    expect_adversarial(again, again.validation[0], again.validation[0].text.lengths_B.tolist())


def test_a_number_is_said_in_its_own_units(tmp_path: Path) -> None:
    """Far from 0 and 1."""
    train = written(tmp_path / "a.csv", [(text, NUMBERS[label]) for text, label in rows(120, labels=tuple(NUMBERS))])
    task = taught(tmp_path / "model", train, "classification.kind=regression")
    assert task.assets.ngrams is None
    higher, lower = (task.classify(text).value for text in ("the star near my moon", "a ball like the race"))
    assert higher - lower == pytest.approx(1_000, abs=300)
    assert "root of the mean squared error" in (tmp_path / "model" / "card.md").read_text()


def test_a_number_begun_from_others_has_its_own_units(tmp_path: Path) -> None:
    """Prices after thousands of them: the last layer is fresh, the rest is not."""
    first = taught(
        tmp_path / "first",
        written(tmp_path / "a.csv", [(text, NUMBERS[label]) for text, label in rows(120, labels=tuple(NUMBERS))]),
        "classification.kind=regression",
    )
    train = written(tmp_path / "b.csv", [(text, SMALLER[label]) for text, label in rows(120, 2, tuple(NUMBERS))])
    settings = ("data.validation=20", "training.rate=0.001", "classification.kind=regression")
    more = regard.train(
        task="classification",
        train=train,
        output=tmp_path / "more",
        start_from=tmp_path / "first",
        settings=settings,
        steps=1,
        threads=1,
        device="cpu",
    )
    weights = [one.model.head.classes.weight for one in (first, more)]
    assert not torch.allclose(*weights, atol=0.02)  # a step of 0.001 would not move it as far
    assert all(abs(one.value) < 5 for one in more.classify(["the star near my moon", "a ball like the race"]))


NUMBERS = {"sport": "50000", "sky": "51000"}
SMALLER = {"sport": "0.5", "sky": "1.0"}


def test_a_model_has_probabilities_before_its_run_is_done(tmp_path: Path) -> None:
    """N-grams and network are added up to scores of any size; the temperature makes them probabilities."""
    files = written(tmp_path / "a.csv", rows(60)), written(tmp_path / "v.csv", rows(20, seed=3))
    model = taught(tmp_path / "model", files[0], steps=2, valid=files[1])
    again = teaching(model, *files, tmp_path / "data")
    model.assets = replace(model.assets, fitted=FittedValues())
    found = again.validate(True)
    assert model.assets.fitted.temperature != 1
    probability_BC = model.predictor().probabilities(again.predict_validation())
    labels_B = [sorted(WORDS).index(label) for _, label in rows(20, seed=3)]
    nll = -np.log(probability_BC[np.arange(20), labels_B]).mean()
    assert found.loss == pytest.approx(nll, rel=1e-4)
    said = [float(sample.hypothesis.split()[-1]) for sample in found.samples]
    assert said == pytest.approx(probability_BC.max(1)[[0, 9, 19]], abs=0.01)


def test_a_broken_scikit_learn_costs_the_comparison_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any) -> None:
        raise ImportError("no libgomp")

    monkeypatch.setattr(training.baseline, "score_baseline", broken)
    taught(tmp_path / "model", written(tmp_path / "a.csv", rows(60)), steps=2)
    assert "scikit-learn cannot be imported (no libgomp)" in (tmp_path / "model" / "card.md").read_text()
