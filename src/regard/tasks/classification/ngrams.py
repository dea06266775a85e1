"""A linear classifier of n-grams: a support vector machine for each class [Joachims98], beside a model that reads.

It is fitted to the texts before training, in seconds. What it says of a text is added to the scores of the model, which
is trained as if it were alone: a model trained on what the other leaves over would learn nothing, since on the texts
that both learn from a linear classifier of so many n-grams makes no errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.system import disk
from regard.system.errors import Damaged
from regard.text.ngrams import Bags, NGrams, words_of

if TYPE_CHECKING:
    from torch import Tensor

NGRAMS = "ngrams.safetensors"
BUCKETS = 1 << 24
"""Numbers of n-grams; so many that two hardly ever share one."""
MOST = 1 << 18
"""N-grams that have weights: those in most texts."""
PENALTY = 1.0
"""C: what an error costs beside the size of the weights."""
STEPS, INNER = 10, 5
"""Of Newton's method, and of conjugate gradients within one, at most."""
CLOSE, SOLVED = 2e-2, 0.1
"""The gradient is small enough at this part of the first, and a step solved at this part of its own."""


@dataclass(frozen=True)
class LinearNGrams:
    """A fitted classifier.

    Args:
        buckets_X: the numbers of the n-grams that have weights, in order.
        weight_XC: of each of them for each class.
        bias_C: of each class.
        data: the fingerprint of the texts it was fitted to.
    """

    buckets_X: NDArray[np.int32]
    weight_XC: NDArray[np.float16]
    bias_C: NDArray[np.float32]
    data: str = ""

    def scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """``score_BC``: above 0 where a text is of a class, 1 and more where that is sure."""
        found = np.tile(self.bias_C.astype(np.float64), (len(texts), 1))
        for row, text in zip(found, texts, strict=True):
            rows_N, weights_N = _known(*self._ngrams.bag(text), self.buckets_X)
            row += weights_N @ self.weight_XC[rows_N].astype(np.float32)
        return found

    def contributions(self, text: str) -> tuple[list[str], NDArray[np.float64]]:
        """The words of a text, in lower case, and ``score_WC``: what each adds to the scores; the bias is the rest."""
        bags = self._ngrams.bags_of_words(text)
        found = np.zeros((len(bags), len(self.bias_C)))
        for row, bag in zip(found, bags, strict=True):
            rows_N, weights_N = _known(*bag, self.buckets_X)
            row += weights_N @ self.weight_XC[rows_N].astype(np.float32)
        return words_of(text), found

    @cached_property
    def _ngrams(self) -> NGrams:
        """Remembers the n-grams of words from call to call."""
        return NGrams(BUCKETS)

    @property
    def content(self) -> bytes:
        """The bytes of its file."""
        from safetensors.numpy import save

        tensors: dict[str, NDArray[Any]] = {"buckets": self.buckets_X, "weight": self.weight_XC, "bias": self.bias_C}
        return save(tensors, {"data": self.data})


def _known(
    buckets_N: NDArray[np.int64], weights_N: NDArray[np.float32], buckets_X: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The places of those n-grams among ``buckets_X`` that are there, and their weights."""
    if not len(buckets_X):
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    place_N = np.minimum(np.searchsorted(buckets_X, buckets_N), len(buckets_X) - 1)
    there_N = buckets_X[place_N] == buckets_N
    return place_N[there_N], weights_N[there_N]


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
            buckets_X, weight_XC, bias_C = (file.get_tensor(name) for name in ("buckets", "weight", "bias"))
            said = file.metadata() or {}
    except (SafetensorError, ValueError) as error:
        raise Damaged("is damaged", str(path)) from error
    kinds = [(buckets_X, np.int32, 1), (weight_XC, np.float16, 2), (bias_C, np.float32, 1)]
    fits = all(one.dtype == kind and one.ndim == dimensions for one, kind, dimensions in kinds)
    if not fits or weight_XC.shape != (len(buckets_X), len(bias_C)) or (np.diff(buckets_X) <= 0).any():
        raise Damaged("is damaged", str(path))
    return LinearNGrams(buckets_X, weight_XC, bias_C, said.get("data", ""))


def write_ngrams(folder: Path, fitted: LinearNGrams) -> None:
    """Write the file of a folder; replaces it at once."""
    disk.replace(folder / NGRAMS, fitted.content)


def is_fitted(folder: Path, data: str) -> bool:
    """Whether a folder has an intact classifier of these texts."""
    try:
        found = read_ngrams(folder)
    except Damaged:
        return False
    return found is not None and found.data == data


def fit(bags: Bags, targets_BC: NDArray[np.bool_], data: str = "") -> LinearNGrams:
    """A support vector machine with squared hinge loss for each class, by Newton's method [Keerthi05].

    By one thread, so that the bits do not depend on how many cores a machine has.

    Args:
        bags: the n-grams of the texts, of :data:`BUCKETS` different ones.
        targets_BC: which classes each text is of.
        data: the fingerprint of the texts.
    """
    import torch

    with torch.no_grad(), _one_thread():
        buckets_X = _most_common(bags.buckets_N)
        by_text, by_ngram = _matrices(bags, buckets_X)
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
    return LinearNGrams(buckets_X, weight_XC[:-1].numpy().astype(np.float16), weight_XC[-1].numpy().copy(), data)


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _most_common(buckets_N: NDArray[np.int64]) -> NDArray[np.int32]:
    """The n-grams of most texts, in order; of those in as many the first."""
    buckets_X, counts_X = np.unique(buckets_N, return_counts=True)
    kept = np.sort(np.argsort(-counts_X, kind="stable")[:MOST])
    return buckets_X[kept].astype(np.int32)


def _newton_step(by_text: SparseMatrix, by_ngram: SparseMatrix, inside_BC: Tensor, gradient_XC: Tensor) -> Tensor:
    """What solves ``Hessian · move = -gradient`` nearly, for each class by itself, by conjugate gradients."""
    import torch

    move_XC, rest_XC = torch.zeros_like(gradient_XC), -gradient_XC
    direction_XC, square_C = rest_XC.clone(), rest_XC.square().sum(0)
    wanted_C = SOLVED**2 * square_C
    for _ in range(INNER):
        open_C = square_C > wanted_C
        if not open_C.any():
            break
        curved_XC = direction_XC + 2 * PENALTY * by_ngram.times(inside_BC * by_text.times(direction_XC))
        size_C = torch.where(open_C, square_C / (direction_XC * curved_XC).sum(0), 0.0)
        move_XC += size_C * direction_XC
        rest_XC -= size_C * curved_XC
        before_C, square_C = square_C, rest_XC.square().sum(0)
        direction_XC = rest_XC + torch.where(open_C, square_C / before_C, 0.0) * direction_XC
    return move_XC


@dataclass(frozen=True)
class SparseMatrix:
    """A sparse matrix by rows; torch multiplies bags of rows several times faster than its sparse matrices."""

    starts_R1: Tensor
    columns_N: Tensor
    values_N: Tensor

    @classmethod
    def of(
        cls, rows_N: NDArray[np.int64], columns_N: NDArray[np.int64], values_N: NDArray[np.float32], rows: int
    ) -> SparseMatrix:
        """From its entries in any order."""
        import torch

        order = np.argsort(rows_N, kind="stable")
        starts_R1 = np.append(0, np.bincount(rows_N, minlength=rows).cumsum())
        return cls(*(torch.from_numpy(one) for one in (starts_R1, columns_N[order], values_N[order])))

    def times(self, dense_XC: Tensor) -> Tensor:
        """The product with a dense matrix."""
        from torch.nn.functional import embedding_bag

        return embedding_bag(
            self.columns_N,
            dense_XC,
            self.starts_R1,
            mode="sum",
            per_sample_weights=self.values_N,
            include_last_offset=True,
        )


def _matrices(bags: Bags, buckets_X: NDArray[np.int32]) -> tuple[SparseMatrix, SparseMatrix]:
    """Texts by n-grams, with a column of ones for the bias, and the same transposed."""
    texts, ngrams = len(bags.starts_B1) - 1, len(buckets_X)
    texts_N, known_N = np.repeat(np.arange(texts), np.diff(bags.starts_B1)), np.isin(bags.buckets_N, buckets_X)
    places_N = np.append(np.searchsorted(buckets_X, bags.buckets_N[known_N]), np.full(texts, ngrams))
    weights_N = np.append(bags.weights_N[known_N], np.ones(texts, np.float32))
    texts_N = np.append(texts_N[known_N], np.arange(texts))
    return SparseMatrix.of(texts_N, places_N, weights_N, texts), SparseMatrix.of(
        places_N, texts_N, weights_N, ngrams + 1
    )
