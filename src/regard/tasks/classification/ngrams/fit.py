"""Fitting the linear classifier: a support vector machine for each class [Joachims98]."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.tasks.classification.ngrams.linear import LinearNGrams, unit_scale
from regard.tasks.classification.ngrams.sparse import SparseMatrix, one_thread
from regard.text.ngrams import Bags, Form

MOST = 1 << 18
"""N-grams that have weights: those in most texts."""
FEW = 3000
"""Texts below which rare n-grams count more. Of 300 texts that gains two to three points, of thousands nothing,
and of pairs and numbers it loses up to two."""
PENALTY = 1.0
"""C: what an error costs beside the size of the weights."""
NUMBER_PENALTY = 0.5
"""The same of a number, whose errors are all counted."""
STEPS, INNER = 10, 5
"""Of Newton's method, and of conjugate gradients within one, at most."""
RIDGE_STEPS, RIDGE_SOLVED = 50, 1e-3
"""Of conjugate gradients for numbers, at most, and the part of the first residual that is left."""
CLOSE, SOLVED = 2e-2, 0.1
"""The gradient is small enough at this part of the first, and a step solved at this part of its own."""


def fit(bags: Bags, targets_BC: NDArray[np.bool_], data: str = "", *, form: Form = "text") -> LinearNGrams:
    """A support vector machine with squared hinge loss for each class, by Newton's method [Keerthi05].

    By one thread, so that the bits do not depend on how many cores a machine has.

    Args:
        bags: the n-grams of the texts; of fewer than :data:`FEW` single texts they are weighed by how rare they are.
        targets_BC: which classes each text is of.
        data: the fingerprint of the texts.
        form: of the bags.
    """
    with torch.no_grad(), one_thread():
        buckets_X, rarity_X = _ngrams_and_rarity(bags, form)
        by_text, by_ngram = _matrices(bags, buckets_X, rarity_X)
        sign_BC = torch.from_numpy(np.where(targets_BC, 1.0, -1.0).astype(np.float32))
        weight_XC = torch.zeros(len(buckets_X) + 1, sign_BC.shape[1])
        weight_XC[-1] = sign_BC.mean(0)
        wanted_C, open_C = torch.zeros(sign_BC.shape[1]), torch.arange(sign_BC.shape[1])
        for step in range(STEPS):
            sign_BO, weight_XO = sign_BC[:, open_C], weight_XC[:, open_C]
            short_BO = (1 - sign_BO * by_text.times(weight_XO)).clamp(min=0)
            gradient_XO = weight_XO - 2 * PENALTY * by_ngram.times(sign_BO * short_BO)
            size_O = gradient_XO.norm(dim=0)
            if not step:
                wanted_C = CLOSE * size_O
            left_O = size_O > wanted_C[open_C]
            open_C = open_C[left_O]
            if not len(open_C):
                break
            inside_BO = (short_BO[:, left_O] > 0).float()
            weight_XC[:, open_C] += _newton_step(by_text, by_ngram, inside_BO, gradient_XO[:, left_O])
    return _classifier(buckets_X, weight_XC, rarity_X, data, form)


def fit_numbers(bags: Bags, number_B: NDArray[np.float64], data: str = "", *, form: Form = "number") -> LinearNGrams:
    """A ridge regression of numbers of mean 0 and variance 1, by conjugate gradients and one thread.

    Args:
        bags: as of :func:`fit`.
        number_B: of each text.
        data: the fingerprint of the texts.
        form: of the bags.
    """
    with torch.no_grad(), one_thread():
        buckets_X, rarity_X = _ngrams_and_rarity(bags, form)
        by_text, by_ngram = _matrices(bags, buckets_X, rarity_X)
        number_B1 = torch.from_numpy(number_B.astype(np.float32))[:, None]
        gradient_X1 = -2 * NUMBER_PENALTY * by_ngram.times(number_B1)
        weight_X1 = _newton_step(
            by_text, by_ngram, torch.ones_like(number_B1), gradient_X1, NUMBER_PENALTY, RIDGE_STEPS, RIDGE_SOLVED
        )
    return _classifier(buckets_X, weight_X1, rarity_X, data, form)


def _classifier(
    buckets_X: NDArray[np.int32], weight_XC: Tensor, rarity_X: NDArray[np.float32] | None, data: str, form: Form
) -> LinearNGrams:
    weight, bias = weight_XC[:-1].numpy().astype(np.float16), weight_XC[-1].numpy().copy()
    return LinearNGrams(buckets_X, weight, bias, rarity_X, data, form)


def _ngrams_and_rarity(bags: Bags, form: Form) -> tuple[NDArray[np.int32], NDArray[np.float32] | None]:
    """The n-grams that get weights and, of few texts with classes, what each is weighed by."""
    buckets_X, counts_X = _most_common(bags.buckets_N)
    texts = len(bags.starts_B1) - 1
    return buckets_X, _rarity(counts_X, texts) if texts < FEW and form == "text" else None


def _most_common(buckets_N: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The n-grams of most texts, in order, and of how many texts each is; of those in as many the first."""
    buckets_X, counts_X = np.unique(buckets_N, return_counts=True)
    kept = np.sort(np.argsort(-counts_X, kind="stable")[:MOST])
    return buckets_X[kept].astype(np.int32), counts_X[kept]


def _rarity(counts_X: NDArray[np.int64], texts: int) -> NDArray[np.float32]:
    """What n-grams are weighed by: 1 where all texts have one, more where few have [Jones72]."""
    return (np.log((1 + texts) / (1 + counts_X)) + 1).astype(np.float32)


def _newton_step(
    by_text: SparseMatrix,
    by_ngram: SparseMatrix,
    inside_BC: Tensor,
    gradient_XC: Tensor,
    penalty: float = PENALTY,
    steps: int = INNER,
    solved: float = SOLVED,
) -> Tensor:
    """What solves ``Hessian · move = -gradient`` nearly, for each class by itself, by conjugate gradients."""
    move_XC, rest_XC = torch.zeros_like(gradient_XC), -gradient_XC
    direction_XC, square_C = rest_XC.clone(), rest_XC.square().sum(0)
    wanted_C = solved**2 * square_C
    for _ in range(steps):
        open_C = square_C > wanted_C
        if not open_C.any():
            break
        curved_XC = direction_XC + 2 * penalty * by_ngram.times(inside_BC * by_text.times(direction_XC))
        size_C = torch.where(open_C, square_C / (direction_XC * curved_XC).sum(0), 0.0)
        move_XC += size_C * direction_XC
        rest_XC -= size_C * curved_XC
        before_C, square_C = square_C, rest_XC.square().sum(0)
        direction_XC = rest_XC + torch.where(open_C, square_C / before_C, 0.0) * direction_XC
    return move_XC


def _matrices(
    bags: Bags, buckets_X: NDArray[np.int32], rarity_X: NDArray[np.float32] | None
) -> tuple[SparseMatrix, SparseMatrix]:
    """Texts by n-grams, with a column of ones for the bias, and the same transposed."""
    texts, ngrams = len(bags.starts_B1) - 1, len(buckets_X)
    texts_N, known_N = np.repeat(np.arange(texts), np.diff(bags.starts_B1)), np.isin(bags.buckets_N, buckets_X)
    texts_N, weights_N = texts_N[known_N], bags.weights_N[known_N]
    places_N = np.searchsorted(buckets_X, bags.buckets_N[known_N])
    if rarity_X is not None:
        weights_N = weights_N * rarity_X[places_N]
        weights_N = weights_N * unit_scale(weights_N, texts_N, texts)
    places_N = np.append(places_N, np.full(texts, ngrams))
    weights_N = np.append(weights_N, np.ones(texts, np.float32))
    texts_N = np.append(texts_N, np.arange(texts))
    return SparseMatrix.of(texts_N, places_N, weights_N, texts), SparseMatrix.of(
        places_N, texts_N, weights_N, ngrams + 1
    )
