"""Classifiers in the making: what they learn, what is fitted at the end, and what is refused."""

import random
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.config import Classification as Section
from regard.data.checks.labels import LabelScan
from regard.data.corpora.corpus import Corpus, no_progress
from regard.data.corpora.labelled import open_labelled
from regard.data.corpora.scan import DataScan
from regard.nn.hooks import intervene
from regard.system.errors import RegardError
from regard.tasks.assets import FittedValues
from regard.tasks.classification import training
from regard.tasks.classification.training import ClassificationJob, ClassificationTraining
from regard.tasks.metrics.calibration import choose_threshold, temperature
from regard.tasks.training.base import ProductPaths
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import WORDS, rows, taught, written
from tests.tasks.small_tasks import evenly, shares


def corpus(path: Path, pairs: list[tuple[str, str]]) -> Corpus:
    return open_labelled(written(path, pairs))


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


@pytest.mark.one_of(3)
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
    asked = Section(out_of_scope="skyyy", threshold=0.7)
    training.refuse_nothing_outside(asked, DataScan([]))  # nothing is to be chosen


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
        taught(tmp_path / name, given, valid=path, steps=10)
        card = (tmp_path / name / "card.md").read_text()
        scores.append([line for line in card.splitlines() if line.startswith("* accuracy")])
    assert scores[0] == scores[1]


def test_the_recipe_of_a_model_begun_from_another_tells_how_its_text_is_cut(tmp_path: Path) -> None:
    given = written(tmp_path / "a.csv", rows(80))
    taught(tmp_path / "first", given, steps=1)
    (tmp_path / "trec.toml").write_text('task = "classification"\n[text]\nvocabulary = 4000\nlowercase = true\n')
    begun = {"start_from": tmp_path / "first", "recipe": tmp_path / "trec.toml"}
    regard.train(train=given, output=tmp_path / "second", steps=1, threads=1, device="cpu", **begun)
    texts = [tomllib.loads((tmp_path / name / "recipe.toml").read_text())["text"] for name in ("first", "second")]
    for name in ("vocabulary", "units", "normalisation", "lowercase"):
        assert texts[0][name] == texts[1][name], name
    tokenizers = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("first", "second")]
    assert tokenizers[0] == tokenizers[1]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["single", "multi", "regression"])
def test_the_loss_may_be_adversarial(tmp_path: Path, kind: str) -> None:
    """In training alone: the mean of the plain loss and of that with embeddings moved against it [Miyato17 §3].

    They are moved text by text, by lengths of 0.7.
    """
    numbers = {label: str(place / 2) for place, label in enumerate(sorted(WORDS))}
    side = [(text, numbers[label] if kind == "regression" else label) for text, label in rows(80)]
    file = written(tmp_path / "a.csv", side)
    task = taught(tmp_path / "model", file, f"classification.kind={kind}", "model.dropout=0", steps=4)
    again = teaching(task, file, file, tmp_path / "data")
    batch, size = again.validation[0], 0.7
    lengths = batch.text.lengths_B.tolist()
    model, recipe = again.model.train().requires_grad_(), again.task.recipe

    def loss(adversarial: float) -> Any:
        section = recipe.classification.model_copy(update={"adversarial": adversarial})
        again.task.recipe = recipe.model_copy(update={"classification": section})
        return again.loss(batch)

    entered: list[torch.Tensor] = []
    enter = lambda x_TD: entered.append(x_TD.detach().requires_grad_()) or entered[0]  # noqa: E731
    with intervene("encoder.input.embedding", enter):
        plain = loss(0.0)
    (gradient_TD,) = torch.autograd.grad(plain.total, entered[0])
    mean = entered[0].norm(dim=1)[: sum(lengths)].mean()
    parts = [size * mean * one / one.norm() for one in gradient_TD[: sum(lengths)].split(lengths) if len(one)]
    moved_TD = torch.cat([*parts, torch.zeros_like(gradient_TD[sum(lengths) :])])
    with intervene("encoder.input.embedding", lambda x_TD: x_TD + moved_TD):
        moved = loss(0.0)
    found = loss(size)
    assert found.total.item() == pytest.approx((plain.total + moved.total).item() / 2, rel=1e-5)
    assert moved.total.item() > plain.total.item()
    assert (found.nll.item(), found.count) == (pytest.approx(plain.nll.item()), plain.count)
    model.eval()
    assert loss(size).total.item() == loss(0.0).total.item()


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of numbers far from 0 and 1."""
    folder = tmp_path_factory.mktemp("priced")
    prices = {"sport": "50000", "sky": "51000"}
    train = written(folder / "a.csv", [(text, prices[label]) for text, label in rows(120, labels=tuple(prices))])
    taught(folder / "model", train, "classification.kind=regression")
    return folder / "model"


def test_a_number_is_said_in_its_own_units(priced: Path) -> None:
    task = regard.Classifier.load(priced, "cpu")
    assert task.assets.ngrams is None
    higher, lower = (task.classify(text).value for text in ("the star near my moon", "a ball like the race"))
    assert higher - lower == pytest.approx(1_000, abs=300)
    assert "root of the mean squared error" in (priced / "card.md").read_text()


def test_a_number_begun_from_others_has_its_own_units(priced: Path, tmp_path: Path) -> None:
    """Small ones after large ones: the last layer is fresh, the rest is not."""
    units = {"sport": "0.5", "sky": "1.0"}
    train = written(tmp_path / "b.csv", [(text, units[label]) for text, label in rows(120, 2, tuple(units))])
    settings = ("data.validation=20", "training.rate=0.001", "classification.kind=regression")
    given: dict[str, Any] = {"task": "classification", "train": train, "start_from": priced, "settings": settings}
    more = regard.train(output=tmp_path / "more", steps=1, threads=1, device="cpu", **given)
    weights = [one.model.head.classes.weight for one in (regard.load(priced, "cpu"), more)]
    assert not torch.allclose(*weights, atol=0.02)  # a step of 0.001 would not move it as far
    assert all(abs(one.value) < 5 for one in more.classify(["the star near my moon", "a ball like the race"]))


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


NAMES = sorted(WORDS)


def test_it_scores_what_scikit_learn_scores() -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    train, held = rows(60), rows(60, seed=8)
    sides = [([text for text, _ in side], [NAMES.index(label) for _, label in side]) for side in (train, held)]
    found = training.score_baseline(*sides[0], *sides[1], 3)
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    alone = LinearSVC().fit(words.fit_transform([text for text, _ in train]), [label for _, label in train])
    right = alone.score(words.transform([text for text, _ in held]), [label for _, label in held])
    assert found is not None
    accuracy, macro_f1 = map(float, re.findall(r"\d+\.\d\d", found))
    assert accuracy >= 100 * right - 3
    assert 0 < macro_f1 <= 100


def test_texts_without_words_have_none(tmp_path: Path) -> None:
    """Words of one letter are none to scikit-learn; the run ends all the same."""
    pytest.importorskip("sklearn")
    assert training.score_baseline(["? ?", "! !"], [0, 1], ["?"], [0], 2) is None
    signs = [("? ! " * (place % 5 + 1) + "." * (place % 7), "ask") for place in range(30)]
    signs += [("- : " * (place % 5 + 1) + "." * (place % 7), "tell") for place in range(30)]
    taught(tmp_path / "model", written(tmp_path / "a.csv", signs), steps=2)
    card = (tmp_path / "model" / "card.md").read_text()
    assert "accuracy" in card
    assert "scikit-learn" not in card


def test_the_card_shows_the_simple_baseline_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scikit-learn nothing is said; a broken one costs the comparison alone."""
    pytest.importorskip("sklearn")

    def broken(*given: Any) -> None:
        raise ImportError("no libgomp")

    cards = []
    for name, value in (("SAMPLES", 3), ("find_spec", lambda name: None), ("score_baseline", broken)):
        with monkeypatch.context() as patch:
            patch.setattr(training, name, value)
            taught(tmp_path / name, written(tmp_path / "a.csv", rows(74)), steps=2)
        cards.append((tmp_path / name / "card.md").read_text())
    assert "linear SVM on TF-IDF n-grams (scikit-learn" in cards[0]
    assert "scikit-learn" not in cards[1]
    assert "scikit-learn cannot be imported (no libgomp)" in cards[2]
