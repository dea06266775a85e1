"""The last layer of a classifier that goes on from an encoder, where few texts are labelled: fitted before training.

A regression on the vectors that the encoder makes already; what is then trained changes it less [Kumar22 §3].
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Recipe
from regard.data.prepare.folder import PreparedExamples
from regard.models.bert import TextHead, VectorHead
from regard.models.inputs import Tokens
from regard.tasks.classification.classifier import TextLabelTask
from regard.tasks.classification.losses import Labels, class_matrix
from regard.tasks.text.preparation import Pretrained
from regard.tasks.text.task import forward_batches

FEW = 1000
"""Windows of texts from which a head is fitted at most: with more, training finds it."""
STRENGTH, STEPS = 10.0, 200
"""Weight of the loss beside the penalty, for vectors of length one on average; steps of the fit."""


def needs_head(recipe: Recipe, begun: Pretrained | None, count: int) -> bool:
    """Whether the last layer is fresh on a pretrained encoder, and few examples are labelled."""
    return (
        begun is not None
        and not begun.recipe.info.has_labels
        and recipe.classification.kind != "regression"
        and count <= FEW
    )


def fit_head(task: TextLabelTask, prepared: PreparedExamples) -> None:
    """Fit the last layer of a model to the labelled texts, all else as it is; a pure function of both.

    Args:
        task: has the model, on the processor.
        prepared: the texts and their labels.
    """
    model = task.model.eval()
    head = model.head
    assert isinstance(head, TextHead)
    places = range(prepared.count)

    def vectors(given: Tokens) -> Tensor:
        return VectorHead.forward(head, model.encoder(given), given.sequences)

    rows = forward_batches(vectors, [prepared.text.sentence(place) for place in places], task.inputs, each=False)
    labels = Labels(*prepared.labels.gather(0, np.arange(prepared.count)))
    wanted_BC = torch.from_numpy(class_matrix(labels, len(task.assets.labels)).astype(np.float64))
    several = task.recipe.classification.kind == "multi"
    weight_CD, bias_C = fitted_layer(torch.from_numpy(np.array(rows, np.float64)), wanted_BC, several=several)
    with torch.no_grad():
        head.classes.weight.copy_(weight_CD)
        head.classes.bias.copy_(bias_C)
    model.train()


def fitted_layer(vector_BD: Tensor, wanted_BC: Tensor, *, several: bool) -> tuple[Tensor, Tensor]:
    """``(weight_CD, bias_C)`` of a logistic regression with a penalty on the squares of its weights.

    Args:
        vector_BD: of texts.
        wanted_BC: 1 for the classes of each, else 0; a text of none does not count.
        several: a text may have several classes.
    """
    known_B = torch.ones(len(wanted_BC)) if several else wanted_BC.sum(1)
    length = vector_BD.norm(dim=1).mean().clamp(min=1e-6)
    x_BD, classes = vector_BD / length, wanted_BC.shape[1]
    weight_CD = torch.zeros(classes, x_BD.shape[1], dtype=torch.float64, requires_grad=True)
    bias_C = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight_CD, bias_C], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        score_BC = F.linear(x_BD, weight_CD, bias_C)
        if several:
            nats_B = F.binary_cross_entropy_with_logits(score_BC, wanted_BC, reduction="none").sum(1)
        else:
            nats_B = -(score_BC.log_softmax(1) * wanted_BC).sum(1)
        total = STRENGTH * (nats_B * known_B).sum() + weight_CD.square().sum() / 2
        total.backward()
        return total

    with torch.enable_grad():
        optimiser.step(loss)
    return (weight_CD / length).detach(), bias_C.detach()
