"""The linear classifier of n-grams: what it counts, the minimum of its objective, its file, and its use."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from safetensors.torch import save as torch_save

import regard
from regard.system.errors import Damaged, RegardError
from regard.tasks.classification import ngrams
from regard.tasks.classification.ngrams import BUCKETS, NGRAMS, Bag, LinearNGrams, NGrams, fit, is_fitted, read_ngrams
from tests.refusals import refused
from tests.tasks.classification.small_classifiers import WORDS, rows, taught, written
from tests.text.crc import crc32


def data(count: int = 120, seed: int = 1) -> tuple[list[str], np.ndarray]:
    texts, labels = zip(*rows(count, seed), strict=True)
    return list(texts), np.array([[label == one for one in sorted(WORDS)] for label in labels])


@cache
def kept() -> LinearNGrams:
    return fit(*data(40), "these texts")


def joined(texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each text begins among the n-grams of all, their numbers and their weights."""
    bags = [NGrams().bag(text) for text in texts]
    starts_B1 = np.cumsum([0, *(len(buckets_N) for buckets_N, _ in bags)])
    return starts_B1, np.concatenate([one for one, _ in bags]), np.concatenate([one for _, one in bags])


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's method to the end, and all n-grams alike."""
    monkeypatch.setattr(ngrams, "FEW", 0)
    monkeypatch.setattr(ngrams, "STEPS", 40)
    monkeypatch.setattr(ngrams, "INNER", 60)
    monkeypatch.setattr(ngrams, "CLOSE", 1e-5)


@pytest.mark.usefixtures("exact")
def test_the_fit_is_the_minimum_of_the_squared_hinge_loss() -> None:
    """There the gradient is nothing, for it is convex; in NumPy, on the columns that occur."""
    texts, targets_BC = data(60)
    fitted = fit(texts, targets_BC)
    starts_B1, buckets_N, weights_N = joined(texts)
    used, place_N = np.unique(buckets_N, return_inverse=True)
    x = np.zeros((len(texts), len(used) + 1))
    x[np.repeat(np.arange(len(texts)), np.diff(starts_B1)), place_N] = weights_N
    x[:, -1] = 1.0
    sign = np.where(targets_BC, 1.0, -1.0)

    def gradient(weight: np.ndarray) -> np.ndarray:
        return weight - 2 * x.T @ (sign * np.maximum(1 - sign * (x @ weight), 0))

    assert (fitted.buckets_X == used).all()
    mine = np.vstack([fitted.weight_XC.astype(np.float64), fitted.bias_C])
    left, begun = (np.linalg.norm(gradient(weight), axis=0) for weight in (mine, np.zeros_like(mine)))
    assert (left < 1e-3 * begun).all()


def test_a_few_steps_are_nearly_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, targets_BC = data(150)
    held, _ = data(100, seed=5)
    quick = fit(texts, targets_BC).scores(held)
    monkeypatch.setattr(ngrams, "STEPS", 40)
    monkeypatch.setattr(ngrams, "CLOSE", 1e-5)
    assert (fit(texts, targets_BC).scores(held).argmax(1) == quick.argmax(1)).mean() > 0.97


def test_its_file_keeps_it(tmp_path: Path) -> None:
    texts, fitted = data(40)[0], kept()
    assert read_ngrams(tmp_path) is None
    assert not is_fitted(tmp_path, "these texts")
    (tmp_path / NGRAMS).write_bytes(fitted.content)
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
    content = kept().content
    draw = np.random.default_rng(1)
    for place in draw.integers(len(content) // 2, len(content), 40):  # behind the header
        flipped = bytearray(content)
        flipped[place] ^= 1 << draw.integers(8)
        (tmp_path / NGRAMS).write_bytes(flipped)
        assert not is_fitted(tmp_path, "these texts")


def test_a_file_of_before_has_no_sha256(tmp_path: Path) -> None:
    fitted = kept()
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
    fitted = fit(texts, targets_BC)
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
    before = torch.get_num_threads()
    try:
        contents = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            contents.append(fit(texts, targets_BC).content)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert contents[0] == contents[1]


def test_few_texts_are_weighed_by_rarity() -> None:
    """As TF-IDF of scikit-learn has it, but for one length of both kinds together."""
    texts = ["red wine", "red car", "a red red boat"]
    fitted = fit(texts, np.eye(3, dtype=np.bool_))
    assert fitted.rarity_X is not None
    place = dict(zip(fitted.buckets_X.tolist(), fitted.rarity_X.tolist(), strict=True))
    assert place[ngrams.number_of("red")] == pytest.approx(np.log(4 / 4) + 1)
    assert place[ngrams.number_of("boat")] == pytest.approx(np.log(4 / 2) + 1)
    _, weights_N = fitted._rows(NGrams().bag("a red red boat"))
    assert np.linalg.norm(weights_N * fitted._scale(weights_N)) == pytest.approx(2**0.5)


@pytest.mark.parametrize("left", ["pair", "number", "vectors"])
def test_a_file_of_an_earlier_version_that_has_more_is_refused(tmp_path: Path, left: str) -> None:
    """Its scores without what is no longer read would be others."""
    fitted = kept()
    tensors = {"buckets": fitted.buckets_X, "weight": fitted.weight_XC, "bias": fitted.bias_C}
    if left == "vectors":
        tensors |= {"words": np.arange(2, dtype=np.int32), "vectors": np.zeros((2, 4), np.float16)}
    form = "" if left == "vectors" else f" form:{left}"
    (tmp_path / NGRAMS).write_bytes(save(tensors, {"data": f"these texts sha256:{'0' * 64}{form}"}))
    for look in (read_ngrams, lambda folder: is_fitted(folder, "these texts")):
        with refused(RegardError, tmp_path / NGRAMS, "train the model again"):
            look(tmp_path)


def test_words_and_neighbours_and_characters_within_a_word() -> None:
    assert ngrams.word_ngrams(["a", "cat"]) == ["a", "cat", "\x02 a", "a cat", "cat \x03"]
    assert ngrams.word_ngrams([]) == ["\x02 \x03"]
    for word, wanted in {
        "cat": [" c", "ca", "at", "t ", " ca", "cat", "at ", " cat", "cat ", " cat "],
        "a": [" a", "a ", " a "],
        "?": [" ?", "? ", " ? "],
    }.items():
        assert ngrams.character_ngrams(word) == ["\x01" + one for one in wanted]


def test_each_kind_has_length_one_and_frequent_ngrams_weigh_more() -> None:
    buckets_N, weights_N = NGrams().bag("the cat the dog")
    of_words = len(np.unique([hash(one) for one in ngrams.word_ngrams("the cat the dog".split())]))
    assert np.linalg.norm(weights_N[:of_words]) == pytest.approx(1)
    assert np.linalg.norm(weights_N[of_words:]) == pytest.approx(1)
    rare, twice = weights_N[:of_words].min(), weights_N[:of_words].max()
    assert twice / rare == pytest.approx(1 + np.log(2), rel=1e-5)
    assert len(buckets_N) == len(weights_N)


def test_case_and_place_do_not_matter_and_hashes_never_change() -> None:
    assert NGrams().bag("A Cat")[0].tolist() == NGrams().bag("a cat")[0].tolist()
    every = [*ngrams.word_ngrams(["a"]), *ngrams.character_ngrams("a")]
    assert sorted(NGrams().bag("a")[0].tolist()) == sorted(crc32(one.encode()) % BUCKETS for one in every)


@pytest.mark.parametrize("text", ["the cat saw the cat", "cat", "", "a b a b!"])
def test_the_bags_of_words_add_up_to_the_bag_of_the_text(text: str) -> None:
    whole, bags = added([NGrams().bag(text)]), NGrams().bags_of_words(text)
    assert len(bags) == len(ngrams.words_of(text))
    known = added(bags)
    assert len(whole.keys() - known.keys()) <= (not ngrams.words_of(text))  # the pair of both ends belongs to no word
    assert known == pytest.approx({bucket: whole[bucket] for bucket in known}, rel=1e-4)


def added(bags: list[Bag]) -> dict[int, float]:
    found: dict[int, float] = {}
    for buckets_N, weights_N in bags:
        for bucket, weight in zip(buckets_N.tolist(), weights_N.tolist(), strict=True):
            found[bucket] = found.get(bucket, 0.0) + weight
    return found


def test_a_word_has_what_only_it_occurs_in() -> None:
    first, second = NGrams().bags_of_words("red wine")
    pair, red = (NGrams().bag("red wine")[0] == crc32(one) % BUCKETS for one in (b"red wine", b"red"))
    weight = dict(zip(*NGrams().bag("red wine"), strict=True))
    bucket, own = int(NGrams().bag("red wine")[0][pair][0]), int(NGrams().bag("red wine")[0][red][0])
    assert dict(zip(*first, strict=True))[bucket] == pytest.approx(weight[bucket] / 2)
    assert dict(zip(*second, strict=True))[bucket] == pytest.approx(weight[bucket] / 2)
    assert dict(zip(*first, strict=True))[own] == pytest.approx(weight[own])
    assert own not in second[0]
