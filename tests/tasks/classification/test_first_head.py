"""The last layer of a classifier on a pretrained encoder: a regression with a penalty, where texts are few."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import regard
from regard.tasks.classification import first_head
from tests.tasks.classification.small_classifiers import rows, written
from tests.tasks.small_tasks import encoder, put


def penalised(weight_CD: torch.Tensor, bias_C: torch.Tensor, x_BD: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """What is to be small, for vectors of length one on average."""
    x_BD = x_BD / x_BD.norm(dim=1).mean()
    nats = torch.nn.functional.cross_entropy(x_BD @ weight_CD.t() + bias_C, wanted, reduction="sum")
    return first_head.STRENGTH * nats + weight_CD.square().sum() / 2


def test_it_is_the_minimum_by_small_steps_too() -> None:
    generator = torch.Generator().manual_seed(2)
    x_BD = 7 * torch.randn(30, 5, generator=generator, dtype=torch.float64)
    wanted = torch.arange(30) % 3
    weight_CD, bias_C = first_head.fitted_layer(x_BD, torch.eye(3, dtype=torch.float64)[wanted], several=False)
    weight = (weight_CD * x_BD.norm(dim=1).mean()).requires_grad_()
    bias = bias_C.clone().requires_grad_()
    best = penalised(weight, bias, x_BD, wanted)
    for gradient in torch.autograd.grad(best, [weight, bias]):
        assert float(gradient.abs().max()) < 1e-3 * best.item()


def test_a_text_of_no_class_does_not_count() -> None:
    x_BD = torch.randn(20, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x_BD = x_BD / x_BD.norm(dim=1, keepdim=True)
    wanted_BC = torch.eye(2, dtype=torch.float64)[torch.arange(20) % 2]
    wanted_BC[15:] = 0
    whole = first_head.fitted_layer(x_BD, wanted_BC, several=False)
    part = first_head.fitted_layer(x_BD[:15], wanted_BC[:15], several=False)
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(whole, part, strict=True))
    several = first_head.fitted_layer(x_BD, wanted_BC, several=True)  # there it is one without any
    assert not torch.allclose(several[1], part[1], atol=1e-2)


@pytest.mark.parametrize(
    ("begun", "kind", "count", "needed"),
    [
        ("encoding", "single", 300, True),
        ("masked", "multi", 1000, True),
        ("labels", "single", 300, False),
        (None, "single", 300, False),
        ("encoding", "regression", 300, False),
        ("encoding", "single", 1001, False),
    ],
)
def test_when_a_head_is_fitted(begun: str | None, kind: str, count: int, needed: bool) -> None:
    recipe: Any = SimpleNamespace(classification=SimpleNamespace(kind=kind))
    info = SimpleNamespace(has_labels=begun == "labels")
    pretrained: Any = SimpleNamespace(recipe=SimpleNamespace(info=info)) if begun else None
    assert first_head.needs_head(recipe, pretrained, count) is needed


def test_a_classifier_begins_with_what_the_vectors_of_its_encoder_tell(tmp_path: Path) -> None:
    """One step of nearly no rate leaves the last layer as it was fitted to the texts that are learned from."""
    begun, texts = put(tmp_path / "begun", encoder(pool="mean", pooler=False)), rows(60)
    model = regard.train(
        task="classification",
        train=written(tmp_path / "a.csv", texts),
        valid=written(tmp_path / "v.csv", rows(20, seed=3)),
        start_from=begun,
        output=tmp_path / "model",
        settings=("training.rate=1e-9", "classification.ngrams=false"),
        steps=1,
        threads=1,
        device="cpu",
    )
    vector_BD = regard.load(begun, "cpu").encode([text for text, _ in texts], normalise=False)
    wanted = [model.assets.labels.index(label) for _, label in texts]
    x_BD, wanted_BC = torch.from_numpy(vector_BD).double(), torch.eye(len(model.assets.labels)).double()[wanted]
    weight_CD, bias_C = first_head.fitted_layer(x_BD, wanted_BC, several=False)
    for found, expected in ((model.model.head.classes.weight, weight_CD), (model.model.head.classes.bias, bias_C)):
        assert torch.allclose(found.double(), expected, atol=1e-2 * float(expected.abs().max()))
