"""Embeddings moved against a loss: as far as is asked, text by text, and no other way hurts as much."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.models.inputs import Patches, Tokens
from regard.nn.hooks import capture, intervene
from regard.nn.loss import EMBEDDING, adversarial_perturbation
from tests.models.small_models import bert, images, rnn_encoder, sentences, texts, vit

READERS = {
    "bert": (lambda: bert(head="classes", pool="mean"), lambda: texts(sentences([5, 1, 7, 3]), tail=4, spare=1)),
    "rnn-encoder": (lambda: rnn_encoder(pool="attention"), lambda: texts(sentences([5, 1, 7, 3]), tail=4, spare=1)),
    "vit": (lambda: vit(), lambda: images(4, tail=4)),
}
CLASSES = torch.tensor([0, 3, 1, 2])


def loss(model: torch.nn.Module, given: Tokens | Patches) -> Tensor:
    return F.cross_entropy(model(given), CLASSES, reduction="none")


@pytest.mark.parametrize("family", READERS)
def test_no_other_way_hurts_as_much(family: str) -> None:
    make, given = READERS[family]
    model, read = make(), given()
    with capture([EMBEDDING]) as heard:
        plain_B = loss(model, read)
    embedding_TD = heard[EMBEDDING][0]
    lengths = read.sequences.lengths_B[:4].tolist()
    size = 1e-4
    moved_TD = adversarial_perturbation(plain_B.sum(), embedding_TD, read.sequences, size)
    assert not moved_TD[sum(lengths) :].any()
    each = moved_TD[: sum(lengths)].split(lengths)
    mean = embedding_TD[: sum(lengths)].norm(dim=1).mean().item()
    assert [one.norm().item() for one in each] == pytest.approx([size * mean] * 4)
    with torch.no_grad(), intervene(EMBEDDING, lambda x_TD: x_TD + moved_TD):
        worse_B = loss(model, read) - plain_B
    assert (worse_B > 0).all()
    for seed in range(20):
        other_TD = torch.randn(moved_TD.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        other = [o / o.norm() * size * mean for o in other_TD[: sum(lengths)].split(lengths)]
        drawn_TD = torch.cat([*other, torch.zeros_like(moved_TD[sum(lengths) :])])
        with torch.no_grad(), intervene(EMBEDDING, lambda x_TD, drawn_TD=drawn_TD: x_TD + drawn_TD):
            assert (loss(model, read) - plain_B < worse_B).all()


def test_a_text_that_nothing_is_asked_of_is_not_moved() -> None:
    model, read = rnn_encoder(pool="mean"), texts(sentences([5, 1, 7, 3]))
    with capture([EMBEDDING]) as heard:
        some = loss(model, read)[[0, 2]].sum()
    moved_TD = adversarial_perturbation(some, heard[EMBEDDING][0], read.sequences, 1.0)
    assert moved_TD.isfinite().all()
    assert not moved_TD[5].any()
    assert not moved_TD[13:].any()
    assert moved_TD[:5].any()
    (some + model(read).sum()).backward()  # the graph is still there
