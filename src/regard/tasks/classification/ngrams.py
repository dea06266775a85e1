"""A linear classifier of n-grams: a support vector machine for each class [Joachims98], beside a model that reads.

It is fitted to the texts before training, in seconds. What it says of a text is added to the scores of the model, which
is trained as if it were alone: a model trained on what the other leaves over would learn nothing, since on the texts
that both learn from a linear classifier of so many n-grams makes no errors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.system import disk
from regard.system.errors import Damaged
from regard.text.ngrams import Bags, NGrams

if TYPE_CHECKING:
    import torch
    from torch import Tensor

NGRAMS = "ngrams.safetensors"
BUCKETS = 1 << 16
PENALTY = 1.0
"""C: what an error costs beside the size of the weights."""
STEPS, INNER = 12, 10
"""Of Newton's method, and of conjugate gradients within one, at most."""
CLOSE, SOLVED = 1e-3, 0.1
"""The gradient is small enough at this part of the first, and a step solved at this part of its own."""


@dataclass(frozen=True)
class LinearNGrams:
    """A fitted classifier.

    Args:
        weight_XC: of each n-gram for each class; the last row is the bias.
        data: the fingerprint of the texts it was fitted to.
    """

    weight_XC: NDArray[np.float16]
    data: str = ""

    def scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """``score_BC``: above 0 where a text is of a class, 1 and more where that is sure."""
        ngrams = NGrams(len(self.weight_XC) - 1)
        found = np.zeros((len(texts), self.weight_XC.shape[1]))
        for row, text in zip(found, texts, strict=True):
            buckets_N, weights_N = ngrams.bag(text)
            row[:] = weights_N @ self.weight_XC[buckets_N].astype(np.float32) + self.weight_XC[-1]
        return found

    @property
    def content(self) -> bytes:
        """The bytes of its file."""
        from safetensors.numpy import save

        return save({"weight": self.weight_XC}, {"data": self.data})


def read_ngrams(folder: Path) -> LinearNGrams | None:
    """The classifier of a folder, if there is one.

    Raises:
        Damaged: the file is not one.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / NGRAMS
    if not path.exists():
        return None
    try:
        with disk.naming(path), safe_open(path, "np") as file:
            weight_XC, said = file.get_tensor("weight"), file.metadata() or {}
    except (SafetensorError, ValueError) as error:
        raise Damaged("is damaged", str(path)) from error
    if weight_XC.ndim != 2 or weight_XC.dtype != np.float16 or len(weight_XC) < 2:
        raise Damaged("is damaged", str(path))
    return LinearNGrams(weight_XC, said.get("data", ""))


def write_ngrams(folder: Path, fitted: LinearNGrams) -> None:
    """Write the file of a folder; replaces it at once."""
    path = folder / NGRAMS
    partial = path.with_name(path.name + ".partial")
    with disk.naming(path):
        partial.write_bytes(fitted.content)
        os.replace(partial, path)


def is_fitted(folder: Path, data: str) -> bool:
    """Whether a folder has an intact classifier of these texts."""
    try:
        found = read_ngrams(folder)
    except Damaged:
        return False
    return found is not None and found.data == data


def fit(bags: Bags, targets_BC: NDArray[np.bool_], data: str = "") -> LinearNGrams:
    """A support vector machine with squared hinge loss for each class, by Newton's method [Keerthi05].

    Args:
        bags: the n-grams of the texts, of :data:`BUCKETS` different ones.
        targets_BC: which classes each text is of.
        data: the fingerprint of the texts.
    """
    import torch

    with torch.no_grad():
        x_BX, x_XB = _matrices(bags)
        sign_BC = torch.from_numpy(np.where(targets_BC, 1.0, -1.0).astype(np.float32))
        weight_XC = torch.zeros(BUCKETS + 1, sign_BC.shape[1])
        margin_BC = torch.zeros_like(sign_BC)
        first_C = None
        for _ in range(STEPS):
            short_BC = (1 - sign_BC * margin_BC).clamp(min=0)
            gradient_XC = weight_XC - 2 * PENALTY * (x_XB @ (sign_BC * short_BC))
            norm_C = gradient_XC.norm(dim=0)
            first_C = norm_C if first_C is None else first_C
            if (norm_C <= CLOSE * first_C).all():
                break
            move_XC = _newton_step(x_BX, x_XB, (short_BC > 0).float(), gradient_XC)
            weight_XC += move_XC
            margin_BC = x_BX @ weight_XC
    return LinearNGrams(weight_XC.numpy().astype(np.float16), data)


def _newton_step(x_BX: Tensor, x_XB: Tensor, inside_BC: Tensor, gradient_XC: Tensor) -> Tensor:
    """What solves ``Hessian · move = -gradient`` nearly, for each class by itself, by conjugate gradients."""
    import torch

    move_XC, rest_XC = torch.zeros_like(gradient_XC), -gradient_XC
    direction_XC, square_C = rest_XC.clone(), rest_XC.square().sum(0)
    wanted_C = SOLVED**2 * square_C
    for _ in range(INNER):
        open_C = square_C > wanted_C
        if not open_C.any():
            break
        curved_XC = direction_XC + 2 * PENALTY * (x_XB @ (inside_BC * (x_BX @ direction_XC)))
        size_C = torch.where(open_C, square_C / (direction_XC * curved_XC).sum(0), 0.0)
        move_XC += size_C * direction_XC
        rest_XC -= size_C * curved_XC
        before_C, square_C = square_C, rest_XC.square().sum(0)
        direction_XC = rest_XC + torch.where(open_C, square_C / before_C, 0.0) * direction_XC
    return move_XC


def _matrices(bags: Bags) -> tuple[Tensor, Tensor]:
    """Texts by n-grams, with a column of ones for the bias, and the same transposed."""
    texts = len(bags.starts_B1) - 1
    counts_B = np.diff(bags.starts_B1)
    buckets_N = np.concatenate([bags.buckets_N, np.full(texts, BUCKETS)])
    weights_N = np.concatenate([bags.weights_N, np.ones(texts, np.float32)])
    texts_N = np.concatenate([np.repeat(np.arange(texts), counts_B), np.arange(texts)])
    by_text, by_bucket = np.argsort(texts_N, kind="stable"), np.argsort(buckets_N, kind="stable")
    return (
        _sparse(texts_N[by_text], buckets_N[by_text], weights_N[by_text], (texts, BUCKETS + 1)),
        _sparse(buckets_N[by_bucket], texts_N[by_bucket], weights_N[by_bucket], (BUCKETS + 1, texts)),
    )


def _sparse(
    rows_N: NDArray[np.int64], columns_N: NDArray[np.int64], values_N: NDArray[np.float32], shape: tuple[int, int]
) -> torch.Tensor:
    import warnings

    import torch

    starts = np.concatenate([[0], np.bincount(rows_N, minlength=shape[0]).cumsum()])
    first, second, third = (torch.from_numpy(one) for one in (starts, columns_N, values_N))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(first, second, third, size=shape, check_invariants=False)
