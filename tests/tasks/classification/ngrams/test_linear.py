"""The linear classifier of n-grams: the minimum of its objective, its file, and what a classifier does with it."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from safetensors.torch import save as torch_save

import regard
from regard.explore.forward.outputs import _text_classes as text_classes
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks.classification.ngrams import fit as fitting
from regard.tasks.classification.ngrams.fit import fit, fit_numbers
from regard.tasks.classification.ngrams.linear import (
    BUCKETS,
    NGRAMS,
    LinearNGrams,
    is_fitted,
    read_ngrams,
    write_ngrams,
)
from regard.text.ngrams import NGrams, NumberNGrams
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import WORDS, rows, taught, written


def data(count: int = 120, seed: int = 1) -> tuple[list[str], np.ndarray]:
    texts, labels = zip(*rows(count, seed), strict=True)
    return list(texts), np.array([[label == one for one in sorted(WORDS)] for label in labels])


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's method to the end, and all n-grams alike."""
    monkeypatch.setattr(fitting, "FEW", 0)
    monkeypatch.setattr(fitting, "STEPS", 40)
    monkeypatch.setattr(fitting, "INNER", 60)
    monkeypatch.setattr(fitting, "CLOSE", 1e-5)


@pytest.mark.usefixtures("exact")
def test_the_fit_is_the_minimum_of_the_squared_hinge_loss() -> None:
    """As gradient descent in NumPy finds it, on the columns that occur."""
    texts, targets_BC = data(60)
    bags = NGrams(BUCKETS).bags(texts)
    fitted = fit(bags, targets_BC)
    used, place_N = np.unique(bags.buckets_N, return_inverse=True)
    x = np.zeros((len(texts), len(used) + 1))
    x[np.repeat(np.arange(len(texts)), np.diff(bags.starts_B1)), place_N] = bags.weights_N
    x[:, -1] = 1.0
    sign = np.where(targets_BC, 1.0, -1.0)

    def objective(weight: np.ndarray) -> np.ndarray:
        short = np.maximum(1 - sign * (x @ weight), 0)
        return 0.5 * (weight**2).sum(0) + (short**2).sum(0)

    weight = np.zeros((x.shape[1], targets_BC.shape[1]))
    rate = 1 / (1 + 2 * np.linalg.norm(x, 2) ** 2)
    for _ in range(4000):
        short = np.maximum(1 - sign * (x @ weight), 0)
        weight -= rate * (weight - 2 * x.T @ (sign * short))
    assert (fitted.buckets_X == used).all()
    mine = np.vstack([fitted.weight_XC.astype(np.float64), fitted.bias_C])
    assert objective(mine) == pytest.approx(objective(weight), rel=1e-3)
    assert mine == pytest.approx(weight, abs=0.02)


@pytest.mark.usefixtures("exact")
def test_it_agrees_with_scikit_learn() -> None:
    svm = pytest.importorskip("sklearn.svm")
    sparse = pytest.importorskip("scipy.sparse")
    texts, targets_BC = data(200)
    held, wanted_BC = data(100, seed=5)
    ngrams = NGrams(BUCKETS)
    bags, more = ngrams.bags(texts), ngrams.bags(held)
    x, y = (
        sparse.csr_matrix((one.weights_N, one.buckets_N, one.starts_B1), shape=(len(one.starts_B1) - 1, BUCKETS))
        for one in (bags, more)
    )
    theirs = svm.LinearSVC(tol=1e-6).fit(x, targets_BC.argmax(1)).decision_function(y)
    assert fit(bags, targets_BC).scores(held) == pytest.approx(theirs, abs=0.02)
    assert (theirs.argmax(1) == wanted_BC.argmax(1)).mean() > 0.9


def test_a_few_steps_are_nearly_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, targets_BC = data(150)
    bags = NGrams(BUCKETS).bags(texts)
    held, _ = data(100, seed=5)
    quick = fit(bags, targets_BC).scores(held)
    monkeypatch.setattr(fitting, "STEPS", 40)
    monkeypatch.setattr(fitting, "CLOSE", 1e-5)
    assert (fit(bags, targets_BC).scores(held).argmax(1) == quick.argmax(1)).mean() > 0.97


def test_its_file_keeps_it(tmp_path: Path) -> None:
    texts, targets_BC = data(40)
    fitted = fit(NGrams(BUCKETS).bags(texts), targets_BC, "these texts")
    assert read_ngrams(tmp_path) is None
    assert not is_fitted(tmp_path, "these texts")
    write_ngrams(tmp_path, fitted)
    assert is_fitted(tmp_path, "these texts")
    assert not is_fitted(tmp_path, "other texts")
    found = read_ngrams(tmp_path)
    assert found is not None
    assert (found.scores(texts) == fitted.scores(texts)).all()
    assert {found.content for _ in range(10)} == {fitted.content}
    (tmp_path / NGRAMS).write_bytes(fitted.content[:100])
    assert not is_fitted(tmp_path, "these texts")
    with pytest.raises(Damaged):
        read_ngrams(tmp_path)
    (tmp_path / NGRAMS).unlink()
    (tmp_path / NGRAMS).mkdir()
    with pytest.raises(Damaged, match="is a folder"):
        read_ngrams(tmp_path)


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    texts, targets_BC = data(40)
    content = fit(NGrams(BUCKETS).bags(texts), targets_BC, "these texts").content
    draw = np.random.default_rng(1)
    for place in draw.integers(len(content) // 2, len(content), 40):  # behind the header
        flipped = bytearray(content)
        flipped[place] ^= 1 << draw.integers(8)
        (tmp_path / NGRAMS).write_bytes(flipped)
        assert not is_fitted(tmp_path, "these texts")


def test_a_file_of_before_has_no_sha256(tmp_path: Path) -> None:
    texts, targets_BC = data(40)
    fitted = fit(NGrams(BUCKETS).bags(texts), targets_BC, "these texts")
    tensors = {"buckets": fitted.buckets_X, "weight": fitted.weight_XC, "bias": fitted.bias_C}
    (tmp_path / NGRAMS).write_bytes(save(tensors, {"data": "these texts"}))
    assert is_fitted(tmp_path, "these texts")
    (tmp_path / NGRAMS).write_bytes(save({**tensors, "bias": fitted.bias_C * np.float32(np.nan)}))
    with pytest.raises(Damaged):
        read_ngrams(tmp_path)
    (tmp_path / NGRAMS).write_bytes(torch_save({"weight": torch.zeros(2, 3, dtype=torch.bfloat16)}))
    with pytest.raises(Damaged):
        read_ngrams(tmp_path)


def test_scores_of_no_text_are_no_rows() -> None:
    nothing = LinearNGrams(np.zeros(0, np.int32), np.zeros((0, 3), np.float16), np.array([1, 2, 3], np.float32))
    assert nothing.scores([]).shape == (0, 3)
    assert nothing.scores(["never seen"]).tolist() == [[1, 2, 3]]


def test_words_add_up_to_the_scores_of_a_text() -> None:
    texts, targets_BC = data(60)
    fitted = fit(NGrams(BUCKETS).bags(texts), targets_BC)
    for text in (texts[0], f"{texts[1]} {texts[1]} unheard"):
        words, share_WC = fitted.contributions(text)
        assert words == text.lower().split()
        assert share_WC.sum(0) + fitted.bias_C == pytest.approx(fitted.scores([text])[0], abs=1e-5)
    assert share_WC[-1] == pytest.approx(np.zeros(targets_BC.shape[1]), abs=0.1)


def test_a_classifier_adds_them_and_keeps_them(tmp_path: Path) -> None:
    train = written(tmp_path / "a.csv", rows(160))
    model = taught(tmp_path / "model", train, "classification.ngrams=true", steps=2)
    texts = [text for text, _ in rows(60, seed=4)]
    assert model.assets.ngrams is not None
    weight = model.assets.fitted.ngrams
    assert weight > 1  # after two steps the network itself knows nothing
    added_BC = weight * model.assets.ngrams.scores(texts)
    model.assets = type(model.assets)(model.assets.tokenizer, model.assets.labels)
    alone_BC = model.scores(texts)
    again = regard.load(tmp_path / "model")
    assert again.scores(texts) == pytest.approx(alone_BC + added_BC, abs=1e-6)
    said = [one.label for one in again.classify(texts)]
    right = np.mean([one == label for one, (_, label) in zip(said, rows(60, seed=4), strict=True)])
    assert right > 0.9
    metrics = (tmp_path / "model" / "training" / "metrics.jsonl").read_text().splitlines()
    valid = [json.loads(line) for line in metrics if '"valid"' in line]
    assert valid[-1]["accuracy"] > 90


def test_a_finished_run_is_recognised_and_a_lost_file_is_fitted_again(tmp_path: Path) -> None:
    train = written(tmp_path / "a.csv", rows(120))
    first = taught(tmp_path / "model", train, "classification.ngrams=true", steps=2)
    again = taught(tmp_path / "model", train, "classification.ngrams=true", steps=2)
    assert (first.assets.ngrams.weight_XC == again.assets.ngrams.weight_XC).all()
    kept = tmp_path / "model" / "training" / "data" / NGRAMS
    kept.unlink()
    more = taught(tmp_path / "model", train, "classification.ngrams=true", steps=4, allow_mismatch=("training.steps",))
    assert (more.assets.ngrams.weight_XC == first.assets.ngrams.weight_XC).all()
    kept.write_bytes(kept.read_bytes()[:50])
    more = taught(tmp_path / "model", train, "classification.ngrams=true", steps=6, allow_mismatch=("training.steps",))
    assert (more.assets.ngrams.weight_XC == first.assets.ngrams.weight_XC).all()


def test_numbers_are_fitted_by_a_ridge_regression() -> None:
    """As the normal equations give it, on the columns that occur."""
    draw = np.random.default_rng(1)
    texts = [" ".join(draw.choice(["a", "cat", "dog", "see"], draw.integers(1, 9))) for _ in range(60)]
    number_B = np.array([len(text.split()) for text in texts], np.float64)
    number_B = (number_B - number_B.mean()) / number_B.std()
    bags = NumberNGrams(BUCKETS).bags(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "RIDGE_SOLVED", 1e-6)
        fitted = fit_numbers(bags, number_B)
    assert fitted.rarity_X is None  # although there are few
    used, place_N = np.unique(bags.buckets_N, return_inverse=True)
    x = np.zeros((len(texts), len(used) + 1))
    x[np.repeat(np.arange(len(texts)), np.diff(bags.starts_B1)), place_N] = bags.weights_N
    x[:, -1] = 1.0
    weight = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ number_B)
    assert fitted.form == "number"
    assert fitted.weight_XC[:, 0] == pytest.approx(weight[:-1], abs=2e-3)
    assert fitted.scores(texts)[:, 0] == pytest.approx(x @ weight, abs=5e-3)


def test_a_number_is_said_in_its_own_units(tmp_path: Path) -> None:
    """Far from 0 and 1, by the network and by n-grams, which add up word by word."""
    train = written(tmp_path / "a.csv", [(text, NUMBERS[label]) for text, label in rows(120, labels=tuple(NUMBERS))])
    task = taught(tmp_path / "model", train, "classification.ngrams=true", "classification.kind=regression", steps=30)
    assert task.assets.ngrams.form == "number"
    for text, wanted in (("the star near my moon", 51_000), ("a ball like the race", 50_000)):
        said = task.classify(text).value
        assert said == pytest.approx(wanted, abs=300)
        shares = text_classes(task, text)["ngrams"]
        assert shares["labels"] == ["number"]
        assert shares["whole"] == pytest.approx([said])
        parts = sum(row[0] for _, row in shares["words"]) + shares["bias"][0]
        assert parts == pytest.approx(shares["ngrams"][0], rel=1e-4)
    plain = taught(tmp_path / "plain", train, "classification.ngrams=false", "classification.kind=regression", steps=60)
    higher, lower = (plain.classify(text).value for text in ("the star near my moon", "a ball like the race"))
    assert higher - lower == pytest.approx(1_000, abs=300)
    card = (tmp_path / "model" / "card.md").read_text()
    assert "root of the mean squared error" in card


def test_a_number_begun_from_others_has_its_own_units(tmp_path: Path) -> None:
    """Prices after thousands of them: the last layer is fresh, the rest is not."""
    first = taught(
        tmp_path / "first",
        written(tmp_path / "a.csv", [(text, NUMBERS[label]) for text, label in rows(120, labels=tuple(NUMBERS))]),
        "classification.ngrams=false",
        "classification.kind=regression",
    )
    train = written(tmp_path / "b.csv", [(text, SMALLER[label]) for text, label in rows(120, 2, tuple(NUMBERS))])
    settings = ("data.validation=20", "training.rate=0.001", "classification.kind=regression")
    more = regard.train(
        task="classification",
        train=train,
        output=tmp_path / "more",
        start_from=tmp_path / "first",
        settings=(*settings, "classification.ngrams=false"),
        steps=1,
        threads=1,
        device="cpu",
    )
    weights = [one.model.head.classes.weight for one in (first, more)]
    assert not torch.allclose(*weights, atol=0.02)  # a step of 0.001 would not move it as far
    assert all(abs(one.value) < 5 for one in more.classify(["the star near my moon", "a ball like the race"]))


NUMBERS = {"sport": "50000", "sky": "51000"}
SMALLER = {"sport": "0.5", "sky": "1.0"}


def test_two_texts_have_ngrams_of_both(tmp_path: Path) -> None:
    """Whether a word occurs in both; the page shows the words of both texts."""
    draw = random.Random(1)
    words = [f"w{place}x" for place in range(40)]
    pairs = [(one := draw.choice(words), one if place % 2 else draw.choice(words)) for place in range(400)]
    rows = "".join(f"{one},{other},{'same' if one == other else 'other'}\n" for one, other in pairs)
    (tmp_path / "a.csv").write_text("text1,text2,label\n" + rows)
    settings = ("classification.ngrams=true", "model.segments=2")
    task = taught(tmp_path / "model", tmp_path / "a.csv", *settings, steps=6, task="sentence-pairs")
    assert task.assets.ngrams.form == read_ngrams(tmp_path / "model").form == "pair"
    said = task.classify([("w3x", "w3x"), ("w3x", "w4x"), ("new", "new"), ("new", "old")])
    assert [one.label for one in said] == ["same", "other", "same", "other"]
    found = text_classes(task, "w3x\tw3x w5x")
    assert [word for word, _ in found["ngrams"]["words"]] == ["w3x", "w3x", "w5x"]
    parts = np.array([row for _, row in found["ngrams"]["words"]]).sum(0) + found["ngrams"]["bias"]
    assert parts == pytest.approx(np.array(found["ngrams"]["ngrams"]), rel=1e-3)
    with refused(UsageError, "line 1", "two texts"):
        text_classes(task, "w3x")


def test_several_labels_each_have_their_own(tmp_path: Path) -> None:
    pairs = [
        (f"{one} {other}", f"{label}|{more}")
        for (one, label), (other, more) in zip(rows(150), rows(150, 7), strict=True)
    ]
    pairs = [(text, "|".join(dict.fromkeys(labels.split("|")))) for text, labels in pairs]
    train = written(tmp_path / "a.csv", pairs)
    model = taught(tmp_path / "model", train, "classification.ngrams=true", "classification.kind=multi", steps=2)
    assert set(model.classify("my bread soup like moon star big").labels) == {"food", "sky"}


def test_the_bits_do_not_depend_on_threads() -> None:
    texts, targets_BC = data(150)
    bags = NGrams(BUCKETS).bags(texts)
    before = torch.get_num_threads()
    try:
        contents = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            contents.append(fit(bags, targets_BC).content)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert contents[0] == contents[1]


def test_few_texts_are_weighed_by_rarity(tmp_path: Path) -> None:
    """As TF-IDF of scikit-learn has it, but for one length of both kinds together."""
    texts = ["red wine", "red car", "a red red boat"]
    fitted = fit(NGrams(BUCKETS).bags(texts), np.eye(3, dtype=np.bool_))
    assert fitted.rarity_X is not None
    place = dict(zip(fitted.buckets_X.tolist(), fitted.rarity_X.tolist(), strict=True))
    of = NGrams(BUCKETS).hash
    assert place[of("red")] == pytest.approx(np.log(4 / 4) + 1)
    assert place[of("boat")] == pytest.approx(np.log(4 / 2) + 1)
    rows_N, weights_N = fitted._rows(NGrams(BUCKETS).bag("a red red boat"))
    assert np.linalg.norm(weights_N * fitted._length(rows_N, weights_N)) == pytest.approx(2**0.5)
    texts, targets_BC = data(120)
    fitted = fit(NGrams(BUCKETS).bags(texts), targets_BC)
    assert (fitted.scores(texts).argmax(1) == targets_BC.argmax(1)).all()
    write_ngrams(tmp_path, fitted)
    found = read_ngrams(tmp_path)
    assert found is not None
    assert (found.scores(texts) == fitted.scores(texts)).all()
    _, share_WC = found.contributions(texts[0])
    assert share_WC.sum(0) + found.bias_C == pytest.approx(found.scores(texts[:1])[0], abs=1e-4)


def test_vectors_of_words_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    """A classifier that learned from texts without labels had them; its scores without them would be others."""
    texts, targets_BC = data(60)
    fitted = fit(NGrams(BUCKETS).bags(texts), targets_BC)
    tensors = {"buckets": fitted.buckets_X, "weight": fitted.weight_XC, "bias": fitted.bias_C}
    tensors |= {"words": np.arange(2, dtype=np.int32), "vectors": np.zeros((2, 4), np.float16)}
    (tmp_path / NGRAMS).write_bytes(save(tensors))
    with refused(RegardError, tmp_path / NGRAMS, "train the model again"):
        read_ngrams(tmp_path)
