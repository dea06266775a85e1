"""A linear classifier of n-grams beside a model that reads: its scores, and its file.

It is fitted to the texts before training, in seconds. What it says of a text is added to the scores of the model, which
is trained as if it were alone: a model trained on what the other leaves over would learn nothing, since on the texts
that both learn from a linear classifier of so many n-grams makes no errors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from regard.system import disk
from regard.system.errors import Damaged, RegardError
from regard.text.ngrams import FORMS, Bag, Form, Vectorizer

NGRAMS = "ngrams.safetensors"
BUCKETS = 1 << 24
"""Numbers of n-grams; so many that two hardly ever share one. Entries that are no n-grams are numbered from here on."""
SEALED, FORM = " sha256:", " form:"
"""Stand in the file behind the fingerprint of the texts, and before the sha256 of its tensors and their form."""
LENGTH = 2**0.5
"""Of a text's n-grams, since words and characters have the length one each."""


@dataclass(frozen=True)
class LinearNGrams:
    """A fitted classifier.

    Args:
        buckets_X: the numbers of the n-grams that have weights, in order; behind them those of other entries.
        weight_XC: of each of them for each class.
        bias_C: of each class.
        rarity_X: what the n-grams of a text are weighed by, where the classifier learned from few texts.
        data: the fingerprint of the texts it was fitted to.
        form: what it is given: texts, or pairs of them.
    """

    buckets_X: NDArray[np.int32]
    weight_XC: NDArray[np.float16]
    bias_C: NDArray[np.float32]
    rarity_X: NDArray[np.float32] | None = None
    data: str = ""
    form: Form = "text"

    def scores(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        """``score_BC``: above 0 where a text is of a class, 1 and more where that is sure; or a number of mean 0."""
        found = np.tile(self.bias_C.astype(np.float64), (len(texts), 1))
        for row, text in zip(found, texts, strict=True):
            rows_N, weights_N = self._rows(self._vectorizer.bag(text))
            row += (weights_N * self._length(rows_N, weights_N)) @ self.weight_XC[rows_N].astype(np.float32)
        return found

    def contributions(self, text: Any) -> tuple[list[str], NDArray[np.float64]]:
        """The words of a text, in lower case, and ``score_WC``: what each adds to the scores; the bias is the rest."""
        whole_N, known_N = self._rows(self._vectorizer.bag(text))
        length_X = np.ones(len(self.buckets_X))
        length_X[whole_N] = self._length(whole_N, known_N)
        bags = self._vectorizer.bags_of_words(text)
        found = np.zeros((len(bags), len(self.bias_C)))
        for row, bag in zip(found, bags, strict=True):
            rows_N, weights_N = self._rows(bag)
            row += (weights_N * length_X[rows_N]) @ self.weight_XC[rows_N].astype(np.float32)
        return self._vectorizer.words(text), found

    def _rows(self, bag: Bag) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The places of the n-grams of a bag that have weights, and how much of each there is."""
        rows_N, weights_N = _known(*bag, self.buckets_X)
        return rows_N, weights_N if self.rarity_X is None else weights_N * self.rarity_X[rows_N]

    def _length(self, rows_N: NDArray[np.int64], weights_N: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the parts of a whole text are multiplied by, so that its n-grams have one length."""
        if self.rarity_X is None:
            return np.ones(len(rows_N), np.float32)
        return unit_scale(weights_N, np.zeros(len(rows_N), np.int64), 1)

    @cached_property
    def _vectorizer(self) -> Vectorizer[Any]:
        """Remembers the n-grams of words from call to call."""
        return FORMS[self.form](BUCKETS)

    @property
    def content(self) -> bytes:
        """The bytes of its file."""
        from safetensors.numpy import save

        tensors: dict[str, NDArray[Any]] = {"buckets": self.buckets_X, "weight": self.weight_XC, "bias": self.bias_C}
        if self.rarity_X is not None:
            tensors["rarity"] = self.rarity_X
        form = "" if self.form == "text" else f"{FORM}{self.form}"
        # several keys have no fixed order
        return save(tensors, {"data": f"{self.data}{SEALED}{_sha256(tensors, self.form)}{form}"})


def unit_scale(weights_N: NDArray[np.float32], text_N: NDArray[np.int64], texts: int) -> NDArray[np.float32]:
    """What the n-grams of texts are multiplied by, so that those of each have the length :data:`LENGTH`.

    Args:
        weights_N: of the n-grams.
        text_N: the text of each, below ``texts``.
    """
    length_B = np.sqrt(np.bincount(text_N, weights_N**2, texts))
    return (LENGTH / np.maximum(length_B[text_N], 1e-12)).astype(np.float32)


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
        Damaged: the file is not one, or not as it was written; those of before have no sha256 in them.
        RegardError: it was fitted with texts without labels, from which an earlier Regard learned vectors of words.
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
            data, _, rest = (file.metadata() or {}).get("data", "").partition(SEALED)
            sha256, _, form = rest.partition(FORM)
    except (SafetensorError, ValueError, TypeError) as error:
        raise Damaged("is damaged", str(path)) from error
    if "vectors" in found:
        raise RegardError(
            "has vectors of words, learned from texts without labels, which this Regard does not read; train the model "
            "again, from labelled texts alone",
            str(path),
        )
    form = form or "text"
    if not _fits(found) or form not in FORMS or sha256 not in ("", _sha256(found, form)):
        raise Damaged("is damaged", str(path))
    parts = (found["buckets"], found["weight"], found["bias"], found.get("rarity"))
    return LinearNGrams(*parts, data, cast(Form, form))


def _sha256(tensors: Mapping[str, NDArray[Any]], form: str) -> str:
    found = hashlib.sha256(b"" if form == "text" else form.encode())
    for name in sorted(tensors):
        found.update(f"{name} {tensors[name].dtype} {tensors[name].shape} ".encode() + tensors[name].tobytes())
    return found.hexdigest()


KINDS: dict[str, tuple[Any, int]] = {
    "buckets": (np.int32, 1),
    "weight": (np.float16, 2),
    "bias": (np.float32, 1),
    "rarity": (np.float32, 1),
}
"""Of each tensor of the file its numbers and dimensions; the first three are always there."""


def _fits(found: dict[str, NDArray[Any]]) -> bool:
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
