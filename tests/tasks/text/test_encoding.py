"""Vectors of texts and images are the model's own, whatever else is in the batch, and in windows."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import VitSection
from regard.models.inputs import Tokens
from regard.nn.hooks import capture
from regard.nn.layout import Sequences
from regard.system.errors import RegardError, UsageError
from regard.tasks.images.classifier import ImageClassification
from regard.tasks.text.encoding import POOLS, ImageVectors, TextVectors, unit_rows
from tests.models.small_models import assert_near
from tests.refusals import refused
from tests.tasks.small_tasks import classifier, recurrent, speaker, translator, viewer

TEXTS = ["the cat sees a dog", "", "snakes", "  ", "it was too tired because the animal didn't cross the street"]
MAKERS = {
    "transformer": partial(translator, norm_place="pre"),
    "bert": classifier,
    "gpt": speaker,
    "rnn": partial(recurrent, encoder_layers=2),
}
"""Tasks with two layers that read."""


def task_of(family: str) -> Any:
    """A model with random weights behind the face of its task, in float64."""
    task = MAKERS[family]()
    task.model.double()
    return task


def around(family: str, tokenizer: Any) -> tuple[list[int], list[int]]:
    """The symbols before and behind a text."""
    return {"bert": ([*tokenizer.begin], [0]), "gpt": ([0], [])}.get(family, ([], [0]))


def alone(task: Any, family: str, ids: list[int], layer: int | None = None) -> np.ndarray:
    """The vectors of one text's tokens, straight from the model."""
    given = Tokens(torch.tensor(ids), Sequences.end_to_end([len(ids)]))
    name = "decoder" if family == "gpt" else "encoder"
    point = f"{name}.{(layer or 1) - 1}.feedforward_residual.residual"
    with torch.no_grad(), capture([point]) as heard:
        found = getattr(task.model, name)(given, **({"causal": True} if family == "gpt" else {}))
    if family == "rnn":
        return found.memory_SD.numpy()
    return (found if layer is None else heard[point][0]).numpy()


@pytest.mark.parametrize("family", MAKERS)
def test_tokens_have_the_vectors_between_the_symbols_and_a_text_all_of_them_pooled(family: str) -> None:
    task = task_of(family)
    vectors, tokenizer = TextVectors(task), task.source_tokenizer
    before, behind = around(family, tokenizer)
    plain = {"first": lambda r: r[0], "last": lambda r: r[-1], "mean": lambda r: r.mean(0), "max": lambda r: r.max(0)}
    assert set(plain) == set(POOLS)
    pooled = {pool: vectors.texts(TEXTS, pool) for pool in POOLS}
    for number, (text, one) in enumerate(zip(TEXTS, vectors.tokens(TEXTS), strict=True)):
        encoded = tokenizer.encode(text)
        if not text.strip():
            assert (one.ids, one.vectors.shape) == ((), (0, 12))
            assert not any(rows[number].any() for rows in pooled.values())
            continue
        assert (list(one.ids), list(one.offsets)) == (encoded.ids, encoded.offsets)
        rows = alone(task, family, [*before, *encoded.ids, *behind])
        assert_near(one.vectors, rows[len(before) : len(rows) - len(behind)], 1e-5)
        for pool, found in pooled.items():
            assert found.shape == (5, 12)
            assert_near(found[number], plain[pool](rows), 1e-5)


@pytest.mark.parametrize("family", ["transformer", "bert", "gpt"])
def test_a_layers_vectors_are_what_leaves_it(family: str) -> None:
    task = task_of(family)
    ids = task.source_tokenizer.ids_batch(["the cat sees a dog"])[0].tolist()
    before, behind = around(family, task.source_tokenizer)
    for layer in (1, 2):
        (one,) = TextVectors(task, layer).tokens(["the cat sees a dog"])
        last = layer == 2  # with the norm that ends a pre-norm stack
        rows = alone(task, family, [*before, *ids, *behind], None if last else layer)
        assert_near(one.vectors, rows[len(before) : len(rows) - len(behind)], 1e-5)


def test_a_recurrent_layer_is_the_stack_up_to_it() -> None:
    task = task_of("rnn")
    both = [TextVectors(task, layer).texts(["the cat sees a dog"])[0] for layer in (1, 2)]
    assert not np.allclose(*both)
    task.model.encoder.stack.layers = task.model.encoder.stack.layers[:1]
    assert_near(both[0], TextVectors(task).texts(["the cat sees a dog"])[0], 1e-6)


@pytest.mark.parametrize("family", MAKERS)
def test_a_long_text_is_read_in_windows(family: str) -> None:
    """Every token has a vector; in the middle of its window it is that of the window read alone."""
    task = task_of(family)
    text = " ".join(["the old dog hears a snake and loves the green cat"] * 9)
    vectors = TextVectors(task)
    (one,) = vectors.tokens([text])
    ids = list(one.ids)
    assert len(ids) > 3 * 40
    assert one.vectors.shape == (len(ids), 12)
    before, behind = around(family, task.source_tokenizer)
    start, room = vectors.frame.starts(len(ids))[1], vectors.frame.room
    rows = alone(task, family, [*before, *ids[start : start + room], *behind])[len(before) :]
    middle = room // 2
    assert_near(one.vectors[start + middle], rows[middle], 1e-5)
    assert np.isfinite(vectors.texts([text])).all()


def test_vectors_of_length_one_and_of_nothing() -> None:
    vectors = TextVectors(task_of("bert"))
    found = vectors.texts(TEXTS, normalise=True)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 0, 1, 0, 1], atol=1e-6)
    (one,) = vectors.tokens(TEXTS[:1], normalise=True)
    np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=1), 1, atol=1e-6)
    assert not unit_rows(np.zeros((2, 3), np.float32)).any()
    assert vectors.texts([]).shape == (0, 12)
    assert vectors.tokens([]) == []
    assert not vectors.texts(["", " "]).any()


def test_what_cannot_be_asked() -> None:
    task = task_of("bert")
    for layer in (0, 3, -1):
        with refused(UsageError, "layer", str(layer), "2"):
            TextVectors(task, layer)
    with refused(UsageError, "pool", "'sum'"):
        TextVectors(task).texts(["a"], "sum")  # type: ignore[arg-type]
    for given, where, kind in (("a text", "texts", "str"), ([1], "texts[0]", "int"), (None, "texts", "NoneType")):
        with refused(UsageError, where, kind):
            TextVectors(task).texts(given)  # type: ignore[arg-type]
    images = SimpleNamespace(recipe=SimpleNamespace(model=VitSection()))
    with refused(UsageError, "model.family"):
        TextVectors(images)


PIXELS = list(np.random.default_rng(1).integers(0, 10, (5, 24)))
SMALL = {"layers": 3, "d_model": 16, "d_ff": 32, "heads": 2}


def image_alone(task: ImageClassification, image: np.ndarray, point: str | None = None) -> np.ndarray:
    (batch,) = task.batches(task.images([image]))
    with torch.inference_mode(), capture([point] if point else []) as heard:
        found = task.model.encoder(batch)
    return (heard[point][-1] if point else found).numpy()


@pytest.mark.parametrize("pool", ["first", "mean", "max"])
def test_an_image_has_the_vector_its_classes_are_told_by(pool: str) -> None:
    task = viewer(**SMALL, pool=pool)
    found = ImageVectors(task).images(PIXELS)
    assert found.shape == (5, 16)
    head: Any = task.model.head
    with torch.inference_mode():
        np.testing.assert_allclose(head.classes(torch.from_numpy(found)), task.scores(PIXELS), atol=1e-5)
    rows = image_alone(task, PIXELS[3])
    expected = {"first": rows[0], "mean": rows.mean(0), "max": rows.max(0)}
    np.testing.assert_allclose(found[3], expected[pool], atol=1e-5)
    np.testing.assert_allclose(ImageVectors(task).images(PIXELS[3:4], "last")[0], rows[-1], atol=1e-5)


def test_a_patch_has_its_own_and_lower_layers_too() -> None:
    task = viewer(**SMALL)
    vectors = ImageVectors(task, 2)
    assert (vectors.rows, vectors.columns) == (3, 2)
    found = vectors.patches(PIXELS)
    assert found.shape == (5, 6, 16)
    for image, rows in zip(PIXELS, found, strict=True):
        expected = image_alone(task, image, "encoder.1.feedforward_residual.residual")[1:]
        np.testing.assert_allclose(rows, expected, atol=1e-5)
    np.testing.assert_allclose(ImageVectors(task, 3).patches(PIXELS), ImageVectors(task).patches(PIXELS))
    assert not np.allclose(found, ImageVectors(task).patches(PIXELS))


def test_image_vectors_of_length_one_of_nothing_and_what_cannot_be() -> None:
    vectors = ImageVectors(viewer(**SMALL))
    for found in (vectors.images(PIXELS, normalise=True), vectors.patches(PIXELS, normalise=True)):
        np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1, atol=1e-6)
    assert vectors.images([]).shape == (0, 16)
    assert vectors.patches([]).shape == (0, 6, 16)
    with refused(UsageError, "layer", "4", "3"):
        ImageVectors(viewer(**SMALL), 4)
    with refused(UsageError, "pool", "'sum'"):
        vectors.images(PIXELS, "sum")  # type: ignore[arg-type]
    with refused(RegardError, "image", "6 x 4 x 1"):
        vectors.images([PIXELS[0][1:]])
