"""A linear classifier of n-grams beside a model that reads: how a text is counted, its fit, its scores and its file.

An n-gram is a word, a pair of neighbours, or 2 to 5 characters within a word [Joachims98]. Its number is a hash, so
that nothing has to be learned from a corpus or stored. The classifier is fitted to the texts before training, in
seconds. What it says of a text is added to the scores of the model, which is trained as if it were alone: a model
trained on what the other leaves over would learn nothing, since on the texts that both learn from a linear classifier
of so many n-grams makes no errors.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from regard.system import disk
from regard.system.errors import Damaged, RegardError

if TYPE_CHECKING:
    from torch import Tensor

Bag = tuple[NDArray[np.int64], NDArray[np.float32]]
"""``(buckets_N, weights_N)``: the numbers of n-grams, and how much of each there is."""
BUCKETS = 1 << 24
"""Numbers of n-grams; so many that two hardly ever share one."""
SIZES = (2, 3, 4, 5)
"""Characters of an n-gram within a word, the spaces around the word among them."""
KEPT = 100_000
"""Words whose n-grams are remembered."""
LENGTH = 2**0.5
"""Of a text's n-grams, since words and characters have the length one each."""
MOST = 1 << 18
"""N-grams that have weights: those in most texts."""
FEW = 3000
"""Texts below which rare n-grams count more. Of 300 texts that gains two to three points, of thousands nothing."""
PENALTY = 1.0
"""C: what an error costs beside the size of the weights."""
STEPS, INNER = 10, 5
"""Of Newton's method, and of conjugate gradients within one, at most."""
CLOSE, SOLVED = 2e-2, 0.1
"""The gradient is small enough at this part of the first, and a step solved at this part of its own."""
NGRAMS = "ngrams.safetensors"
SEALED = " sha256:"
"""Stands in the file between the fingerprint of the texts and the sha256 of its tensors."""
KINDS: dict[str, tuple[type[np.generic], int]] = {
    "buckets": (np.int32, 1),
    "weight": (np.float16, 2),
    "bias": (np.float32, 1),
    "rarity": (np.float32, 1),
}
"""Of each tensor of the file its numbers and dimensions; the first three are always there."""
_WORD = re.compile(r"\w+|[^\w\s]")
_ENDS = ("\x02", "\x03")
"""Stand before the first and behind the last word."""


@dataclass(eq=False)
class NGrams:
    """Counts the n-grams of texts, in lower case.

    Those of words, and those of characters, are weighed by the logarithm of how often they occur, and have together
    the length one.
    """

    _known: dict[str, list[int]] = field(default_factory=dict)

    def bag(self, text: str) -> Bag:
        """``(buckets_N, weights_N)`` of a text."""
        return _join([_log_weights(kind) for kind in self._kinds(words_of(text))])

    def bags_of_words(self, text: str) -> list[Bag]:
        """The bag of a text divided among its words: ``(buckets_N, weights_N)`` of each.

        An n-gram that occurs several times gives each occurrence the same part of its weight, and a pair of words gives
        each of the two half of that.
        """
        words = words_of(text)
        found: list[dict[int, float]] = [{} for _ in words]
        owners = [_owners(len(words)), [[place] for place, word in enumerate(words) for _ in character_ngrams(word)]]
        for buckets, owned in zip(self._kinds(words), owners, strict=True):
            kept_N, weights_N = _log_weights(buckets)
            times = Counter(buckets)
            each = {bucket: weight / times[bucket] for bucket, weight in zip(kept_N.tolist(), weights_N, strict=True)}
            for bucket, places in zip(buckets, owned, strict=True):
                for place in places:
                    found[place][bucket] = found[place].get(bucket, 0.0) + each[bucket] / len(places)
        return [(np.array([*one], np.int64), np.array([*one.values()], np.float32)) for one in found]

    def _kinds(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """The n-grams of words and those of characters, as often as they occur."""
        return [*map(number_of, word_ngrams(words))], [bucket for word in words for bucket in self._characters(word)]

    def _characters(self, word: str) -> list[int]:
        if word not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[word] = [*map(number_of, character_ngrams(word))]
        return self._known[word]


def number_of(ngram: str) -> int:
    """The number of an n-gram."""
    return crc32(ngram.encode("utf-8", "surrogatepass")) % BUCKETS


def words_of(text: str) -> list[str]:
    """The words of a text and its other signs, in lower case."""
    return _WORD.findall(text.lower())


def word_ngrams(words: Sequence[str]) -> list[str]:
    """The words, and each pair of neighbours, the ends of the text among them."""
    ends = [_ENDS[0], *words, _ENDS[1]]
    return [*words, *(f"{left} {right}" for left, right in pairwise(ends))]


def _owners(words: int) -> list[list[int]]:
    """The words that each of :func:`word_ngrams` consists of; the ends of the text are none."""
    pairs = ([place for place in (left, left + 1) if 0 <= place < words] for left in range(-1, words))
    return [*([place] for place in range(words)), *pairs]


def character_ngrams(word: str) -> list[str]:
    """The n-grams of a word between spaces, each with a mark before it; of a short word the whole, once."""
    spaced = f" {word} "
    found: list[str] = []
    for size in SIZES:
        if len(spaced) <= size:
            return [*found, "\x01" + spaced]
        found += ["\x01" + spaced[begin : begin + size] for begin in range(len(spaced) - size + 1)]
    return found


def _log_weights(buckets: list[int]) -> Bag:
    """Each bucket once, with its weight."""
    buckets_N, counts_N = np.unique(np.array(buckets, np.int64), return_counts=True)
    weights_N = 1.0 + np.log(counts_N)
    return buckets_N, (weights_N / max(float(np.linalg.norm(weights_N)), 1e-12)).astype(np.float32)


def _join(bags: Sequence[Bag]) -> Bag:
    return np.concatenate([one for one, _ in bags]), np.concatenate([one for _, one in bags])


@dataclass(frozen=True)
class LinearNGrams:
    """A fitted classifier.

    Args:
        buckets_X: the numbers of the n-grams that have weights, in order.
        weight_XC: of each of them for each class.
        bias_C: of each class.
        rarity_X: what the n-grams of a text are weighed by, where the classifier learned from few texts.
        data: the fingerprint of the texts it was fitted to.
    """

    buckets_X: NDArray[np.int32]
    weight_XC: NDArray[np.float16]
    bias_C: NDArray[np.float32]
    rarity_X: NDArray[np.float32] | None = None
    data: str = ""
    _ngrams: NGrams = field(default_factory=NGrams, init=False, repr=False, compare=False)
    """Remembers the n-grams of words from call to call."""

    def scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """``score_BC``: above 0 where a text is of a class, 1 and more where that is sure."""
        found = np.tile(self.bias_C.astype(np.float64), (len(texts), 1))
        for row, text in zip(found, texts, strict=True):
            rows_N, weights_N = self._rows(self._ngrams.bag(text))
            row += (weights_N * self._scale(weights_N)) @ self.weight_XC[rows_N].astype(np.float32)
        return found

    def contributions(self, text: str) -> tuple[list[str], NDArray[np.float64]]:
        """The words of a text, in lower case, and ``score_WC``: what each adds to the scores; the bias is the rest."""
        whole_N, known_N = self._rows(self._ngrams.bag(text))
        scale_X = np.ones(len(self.buckets_X))
        scale_X[whole_N] = self._scale(known_N)
        bags = self._ngrams.bags_of_words(text)
        found = np.zeros((len(bags), len(self.bias_C)))
        for row, bag in zip(found, bags, strict=True):
            rows_N, weights_N = self._rows(bag)
            row += (weights_N * scale_X[rows_N]) @ self.weight_XC[rows_N].astype(np.float32)
        return words_of(text), found

    def _rows(self, bag: Bag) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The places of the n-grams of a bag that have weights, and how much of each there is."""
        buckets_N, weights_N = bag
        if not len(self.buckets_X):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        place_N = np.minimum(np.searchsorted(self.buckets_X, buckets_N), len(self.buckets_X) - 1)
        there_N = self.buckets_X[place_N] == buckets_N
        rows_N, weights_N = place_N[there_N], weights_N[there_N]
        return rows_N, weights_N if self.rarity_X is None else weights_N * self.rarity_X[rows_N]

    def _scale(self, weights_N: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the n-grams of a whole text are multiplied by."""
        if self.rarity_X is None:
            return np.ones(len(weights_N), np.float32)
        return _unit_scale(weights_N, np.zeros(len(weights_N), np.int64), 1)

    @property
    def content(self) -> bytes:
        """The bytes of its file."""
        from safetensors.numpy import save

        tensors: dict[str, NDArray[np.generic]] = {
            "buckets": self.buckets_X,
            "weight": self.weight_XC,
            "bias": self.bias_C,
        }
        if self.rarity_X is not None:
            tensors["rarity"] = self.rarity_X
        return save(tensors, {"data": f"{self.data}{SEALED}{_sha256(tensors)}"})  # several keys have no fixed order


def _unit_scale(weights_N: NDArray[np.float32], text_N: NDArray[np.int64], texts: int) -> NDArray[np.float32]:
    """What the n-grams of texts are multiplied by, so that those of each have the length :data:`LENGTH`.

    Args:
        weights_N: of the n-grams.
        text_N: the text of each, below ``texts``.
    """
    length_B = np.sqrt(np.bincount(text_N, weights_N**2, texts))
    return (LENGTH / np.maximum(length_B[text_N], 1e-12)).astype(np.float32)


def fit(texts: Iterable[str], targets_BC: NDArray[np.bool_], data: str = "") -> LinearNGrams:
    """A support vector machine with squared hinge loss for each class, by Newton's method [Keerthi05].

    By one thread, so that the bits do not depend on how many cores a machine has.

    Args:
        texts: one or more; of fewer than :data:`FEW` the n-grams are weighed by how rare they are [Jones72].
        targets_BC: which classes each text is of.
        data: the fingerprint of the texts.
    """
    import torch

    bags = [*map(NGrams().bag, texts)]
    buckets_N, weights_N = _join(bags)
    text_N = np.repeat(np.arange(len(bags)), [len(weights) for _, weights in bags])
    every_X, counts_X = np.unique(buckets_N, return_counts=True)
    kept = np.sort(np.argsort(-counts_X, kind="stable")[:MOST])  # of n-grams in as many texts the first
    buckets_X, counts_X = every_X[kept].astype(np.int32), counts_X[kept]
    known_N = np.isin(buckets_N, buckets_X)
    text_N, weights_N = text_N[known_N], weights_N[known_N]
    place_N = np.searchsorted(buckets_X, buckets_N[known_N])
    rarity_X = (np.log((1 + len(bags)) / (1 + counts_X)) + 1).astype(np.float32) if len(bags) < FEW else None
    if rarity_X is not None:
        weights_N = weights_N * rarity_X[place_N]
        weights_N = weights_N * _unit_scale(weights_N, text_N, len(bags))
    # the last column is of ones, for the bias
    place_N = np.append(place_N, np.full(len(bags), len(buckets_X)))
    weights_N = np.append(weights_N, np.ones(len(bags), np.float32))
    text_N = np.append(text_N, np.arange(len(bags)))
    with torch.no_grad(), _one_thread():
        by_text = _product(text_N, place_N, weights_N, len(bags))
        by_ngram = _product(place_N, text_N, weights_N, len(buckets_X) + 1)
        sign_BC = torch.from_numpy(np.where(targets_BC, 1.0, -1.0).astype(np.float32))
        weight_XC = torch.zeros(len(buckets_X) + 1, sign_BC.shape[1])
        weight_XC[-1] = sign_BC.mean(0)
        wanted_C, open_C = torch.zeros(sign_BC.shape[1]), torch.arange(sign_BC.shape[1])
        for step in range(STEPS):
            sign_BO, weight_XO = sign_BC[:, open_C], weight_XC[:, open_C]
            short_BO = (1 - sign_BO * by_text(weight_XO)).clamp(min=0)
            gradient_XO = weight_XO - 2 * PENALTY * by_ngram(sign_BO * short_BO)
            size_O = gradient_XO.norm(dim=0)
            if not step:
                wanted_C = CLOSE * size_O
            left_O = size_O > wanted_C[open_C]
            open_C = open_C[left_O]
            if not len(open_C):
                break
            inside_BO = (short_BO[:, left_O] > 0).float()
            weight_XC[:, open_C] += _newton_step(by_text, by_ngram, inside_BO, gradient_XO[:, left_O])
    weight, bias = weight_XC[:-1].numpy().astype(np.float16), weight_XC[-1].numpy().copy()
    return LinearNGrams(buckets_X, weight, bias, rarity_X, data)


Product = Callable[["Tensor"], "Tensor"]
"""Multiplies a dense matrix by a sparse one."""


def _newton_step(by_text: Product, by_ngram: Product, inside_BC: Tensor, gradient_XC: Tensor) -> Tensor:
    """What solves ``Hessian · move = -gradient`` nearly, for each class by itself, by conjugate gradients."""
    import torch

    move_XC, rest_XC = torch.zeros_like(gradient_XC), -gradient_XC
    direction_XC, square_C = rest_XC.clone(), rest_XC.square().sum(0)
    wanted_C = SOLVED**2 * square_C
    for _ in range(INNER):
        open_C = square_C > wanted_C
        if not open_C.any():
            break
        curved_XC = direction_XC + 2 * PENALTY * by_ngram(inside_BC * by_text(direction_XC))
        size_C = torch.where(open_C, square_C / (direction_XC * curved_XC).sum(0), 0.0)
        move_XC += size_C * direction_XC
        rest_XC -= size_C * curved_XC
        before_C, square_C = square_C, rest_XC.square().sum(0)
        direction_XC = rest_XC + torch.where(open_C, square_C / before_C, 0.0) * direction_XC
    return move_XC


def _product(
    rows_N: NDArray[np.int64], columns_N: NDArray[np.int64], values_N: NDArray[np.float32], rows: int
) -> Product:
    """The product of a sparse matrix, given by its entries in any order, with a dense one.

    Torch multiplies bags of rows several times faster than its sparse matrices.
    """
    from torch import from_numpy
    from torch.nn.functional import embedding_bag

    order = np.argsort(rows_N, kind="stable")
    starts_R1 = from_numpy(np.append(0, np.bincount(rows_N, minlength=rows).cumsum()))
    columns, values = from_numpy(columns_N[order]), from_numpy(values_N[order])
    return lambda dense_XC: embedding_bag(
        columns, dense_XC, starts_R1, mode="sum", per_sample_weights=values, include_last_offset=True
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Within, torch computes by one thread."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def read_ngrams(folder: Path) -> LinearNGrams | None:
    """The classifier of a folder, if there is one.

    Raises:
        Damaged: the file is not one, or not as it was written; those of before have no sha256 in them.
        RegardError: an earlier Regard made it of what this one has no n-grams of.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / NGRAMS
    if not path.exists():
        return None
    if path.is_dir():
        raise Damaged("is a folder; a file is needed", str(path))
    try:
        with disk.naming(path), safe_open(path, "np") as file:
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
            data, _, sha256 = (file.metadata() or {}).get("data", "").partition(SEALED)
    except (SafetensorError, ValueError, TypeError) as error:
        raise Damaged("is damaged", str(path)) from error
    if "vectors" in found or " form:" in sha256:
        what = "of sentence pairs, of numbers or with vectors of words from texts without labels"
        raise RegardError(f"has n-grams {what}, which this Regard does not read; train the model again", str(path))
    if not _fits(found) or sha256 not in ("", _sha256(found)):
        raise Damaged("is damaged", str(path))
    return LinearNGrams(found["buckets"], found["weight"], found["bias"], found.get("rarity"), data)


def _sha256(tensors: Mapping[str, NDArray[np.generic]]) -> str:
    found = hashlib.sha256()
    for name in sorted(tensors):
        found.update(f"{name} {tensors[name].dtype} {tensors[name].shape} ".encode() + tensors[name].tobytes())
    return found.hexdigest()


def _fits(found: dict[str, NDArray[np.generic]]) -> bool:
    """Whether the tensors of a file are those of a classifier."""
    if not {"buckets", "weight", "bias"} <= found.keys() <= KINDS.keys():
        return False
    if any(one.dtype != KINDS[name][0] or one.ndim != KINDS[name][1] for name, one in found.items()):
        return False
    rows = len(found["buckets"])
    return (
        found["weight"].shape == (rows, len(found["bias"]))
        and len(found.get("rarity", found["buckets"])) == rows
        and not (np.diff(found["buckets"]) <= 0).any()
        and all(np.isfinite(one).all() for one in found.values())
    )


def is_fitted(folder: Path, data: str) -> bool:
    """Whether a folder has an intact classifier of these texts."""
    try:
        found = read_ngrams(folder)
    except Damaged:
        return False
    return found is not None and found.data == data
