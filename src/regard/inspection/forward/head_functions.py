"""What heads attend to, counted in one text or image: the previous token, the same word, punctuation, the antecedent …

The functions are those of [Clark19 §3] and [Voita19 §5]; each is a set of keys for every query. A head's share of a
function is the attention that falls on its keys, averaged over the queries that have such keys; chance is what would
fall on them if every visible key were given the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.inspection.forward.record import (
    KINDS,
    AttentionRecord,
    Kind,
    Token,
    Weights,
    entropy,
    is_self_attention,
    mean_distance,
    patch_distances,
    token_distances,
)

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Span = tuple[int, int]
"""Characters of a text: start, end."""
SELF: tuple[Kind, ...] = ("encoder", "decoder")
TEXT: tuple[Kind, ...] = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Antecedent:
    """A pronoun whose antecedent is known, by the characters of texts.

    Args:
        source_text, target_text: of which this is known; of other texts nothing is.
        source: of the pronoun in what is read; ``target``: in what is written.
        antecedents: of the words it stands for, in what is read; ``rivals``: of those it could stand for by its form.
    """

    source_text: str
    target_text: str
    source: Span
    target: Span
    antecedents: tuple[Span, ...]
    rivals: tuple[Span, ...] = ()


@dataclass(frozen=True)
class KindRecord:
    """Queries and keys of one kind of attention in one text.

    Args:
        record: of the pass.
        kind: of attention.
        causal: whether a query sees no later key.
        antecedent: if one is known.
    """

    record: AttentionRecord
    kind: Kind
    causal: bool = False
    antecedent: Antecedent | None = None

    @cached_property
    def keys(self) -> tuple[Token, ...]:
        """The keys."""
        return self.record.keys(self.kind)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """How many queries and keys there are."""
        return len(self.record.queries(self.kind)), len(self.keys)

    @cached_property
    def visible_QK(self) -> Mask:
        """Which keys a query sees."""
        seen: Mask = np.ones(self.shape, np.bool_)
        return np.tril(seen) if self.causal else seen

    @cached_property
    def away_QK(self) -> Floats:
        """The distance of each key from where the query stands, in tokens."""
        return token_distances(*self.shape)

    @cached_property
    def same_QK(self) -> Mask:
        """Keys of words equal to the query's, upper and lower case alike; within a text those elsewhere."""
        queries, keys = self.record.words(self.kind)
        found = np.zeros(self.shape, np.bool_)
        for number, (word, places) in enumerate(queries):
            if any(letter.isalnum() for letter in word):
                for other, (same, there) in enumerate(keys):
                    elsewhere = other != number or not is_self_attention(self.kind)
                    if elsewhere and same.casefold() == word.casefold():
                        found[np.ix_(places, there)] = True
        return found & ~_special(self.record.queries(self.kind))[:, None] & ~_special(self.keys)

    @cached_property
    def punctuation_K(self) -> Mask:
        """Keys that hold marks, and neither letters nor digits."""
        text = self.record.texts(self.kind)[1]
        pieces = [text[token.start : token.end].strip() for token in self.keys]
        return np.array([bool(piece) and not any(map(str.isalnum, piece)) for piece in pieces], np.bool_)


def _special(tokens: Sequence[Token]) -> Mask:
    return np.array([token.special for token in tokens], np.bool_)


def _within(tokens: Sequence[Token], spans: Sequence[Span]) -> Mask:
    found = [any(token.start < end and start < token.end for start, end in spans) for token in tokens]
    return np.array(found, np.bool_)


def _shift(step: int) -> Callable[[KindRecord], Mask]:
    """Keys a number of tokens after the query."""
    return lambda sides: np.eye(*sides.shape, step, np.bool_)


def _known(names: Callable[[Antecedent], Sequence[Span]]) -> Callable[[KindRecord], Mask]:
    """The queries of the pronoun, and the keys of the words that stand for it."""

    def mask(sides: KindRecord) -> Mask:
        found = np.zeros(sides.shape, np.bool_)
        known, record = sides.antecedent, sides.record
        if known is None or known.source_text != record.source_text:
            return found
        written = record.target_text == known.target_text
        span = (known.target if written else None) if sides.kind == "cross" else known.source
        if span is None or (sides.kind == "decoder" and record.target_text != record.source_text):
            return found
        found[np.ix_(_within(record.queries(sides.kind), [span]), _within(sides.keys, names(known)))] = True
        return found

    return mask


def _range(low: float, high: float) -> Callable[[KindRecord], Mask]:
    return lambda sides: (sides.away_QK >= low - 0.5) & (sides.away_QK < high - 0.5)


@dataclass(frozen=True)
class HeadFunction:
    """Something a head may attend to, a share of attention as a column.

    Args:
        title: of its column; ``note``: which keys these are.
        mask: ``mask_QK``, the keys of each query of a :class:`KindRecord`, or ``mask_K``, those of every query; of
            :class:`PatchPositions` the keys, class token first, of every patch, or one row that is every patch's.
        kinds: of attention in which there is such a thing.
    """

    title: str
    note: str
    mask: Callable[..., Mask]
    kinds: tuple[Kind, ...] = KINDS


FUNCTIONS: Mapping[str, HeadFunction] = {
    "previous": HeadFunction("previous token", "the token before", _shift(-1), SELF),
    "next": HeadFunction("next token", "the token after", _shift(1), SELF),
    "itself": HeadFunction("itself", "the same token", _shift(0), SELF),
    "diagonal": HeadFunction(
        "same place", "less than one token from the same place, both texts spread evenly", _range(0, 1.5), ("cross",)
    ),
    "first": HeadFunction("first token", "the first key", lambda sides: np.arange(sides.shape[1]) == 0),
    "end": HeadFunction(
        "end token",
        "a token that is no text, such as </s>, but the first",
        lambda sides: _special(sides.keys) & (np.arange(sides.shape[1]) > 0),
    ),
    "punctuation": HeadFunction("punctuation", "marks", lambda sides: sides.punctuation_K),
    "same_word": HeadFunction("same word", "an equal word or number elsewhere", lambda sides: sides.same_QK, TEXT),
    "antecedent": HeadFunction(
        "antecedent", "of a pronoun, the words it stands for", _known(lambda one: one.antecedents), TEXT
    ),
}
"""The functions by which a head may be named, in the order of their columns."""
RIVAL = HeadFunction("rival", "of a pronoun, the other words it could mean", _known(lambda one: one.rivals), TEXT)
DISTANCES: Mapping[str, HeadFunction] = {
    name: HeadFunction(title, "how many tokens away the keys are", _range(low, high), TEXT)
    for name, title, low, high in (
        ("distance_0", "0", 0, 1),
        ("distance_1", "1", 1, 2),
        ("distance_2", "2", 2, 3),
        ("distance_3_to_4", "3–4", 3, 5),
        ("distance_5_to_8", "5–8", 5, 9),
        ("distance_9_on", "9+", 9, np.inf),
    )
}
SHARES: Mapping[str, HeadFunction] = {**FUNCTIONS, "rival": RIVAL, **DISTANCES}
"""Everything that is a share of attention."""


@dataclass(frozen=True)
class HeadMetrics:
    """What is counted of heads.

    Args:
        of: what it is counted in, such as ``texts``.
        shares: of attention, by name.
        functions: the names of the shares by which a head may be named.
        measures: what else is averaged over queries, to its unit.
    """

    of: str
    shares: Mapping[str, HeadFunction]
    functions: tuple[str, ...]
    measures: Mapping[str, str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What is counted, in order: ``F``."""
        return (*self.shares, *self.measures)

    def title(self, name: str) -> str:
        """Of a column."""
        return self.shares[name].title if name in self.shares else name


OF_TEXTS = HeadMetrics("texts", SHARES, tuple(FUNCTIONS), {"distance": "tokens", "entropy": "bits"})
"""What is counted in texts; the measures are mean distance and entropy [Clark19 §3.3]."""
NAMES, MEASURES = OF_TEXTS.names, tuple(OF_TEXTS.measures)


@dataclass(frozen=True)
class HeadCounts:
    """What one text or image adds, for one kind of attention; ``F`` are the names of its :class:`HeadMetrics`.

    Args:
        sum_LHF: over queries.
        chance_F: the same, if every visible key were given the same.
        queries_F: how many queries there are to divide by; none where the text has nothing of it.
    """

    sum_LHF: Floats
    chance_F: Floats
    queries_F: Floats


def count_heads(sides: KindRecord) -> HeadCounts:
    """What the heads of one kind attend to in one text.

    A query that sees a single key has no choice, and one that sees no key of a function, or no other, cannot show it;
    they are left out.
    """
    weight_LHQK: Floats = np.stack(sides.record.weights[sides.kind]).astype(np.float64)
    visible_QK, away_QK = sides.visible_QK, sides.away_QK
    seen_Q = visible_QK.sum(1)
    free_Q = (seen_Q > 1) & (weight_LHQK.sum(-1).min(axis=(0, 1)) > 0)
    value_FQK, counted_FQ = list[Floats | Mask](), list[Mask]()
    for function in SHARES.values():
        mask_QK = visible_QK & function.mask(sides) if sides.kind in function.kinds else np.zeros(sides.shape, np.bool_)
        there_Q = mask_QK.sum(1)
        value_FQK.append(mask_QK)
        counted_FQ.append(free_Q & (there_Q > 0) & (there_Q < seen_Q))
    value_FQK.append(away_QK * (sides.kind in TEXT))
    counted_FQ += [free_Q & (sides.kind in TEXT), free_Q]
    counted = np.array(counted_FQ, np.float64)
    value = np.array(value_FQK, np.float64) * counted[:-1, :, None]
    layers, heads = weight_LHQK.shape[:2]
    sums = weight_LHQK.reshape(layers * heads, -1) @ value.reshape(len(value), -1).T
    spread = (entropy(weight_LHQK) * counted[-1]).sum(-1)
    alike_QK = visible_QK / seen_Q[:, None]
    return HeadCounts(
        np.concatenate([sums.reshape(layers, heads, -1), spread[..., None]], axis=-1),
        np.append((value * alike_QK).sum(axis=(1, 2)), (np.log2(seen_Q) * counted[-1]).sum()),
        counted.sum(1),
    )


@dataclass(frozen=True)
class PatchPositions:
    """Where the patches of an image lie, row by row; the class token stands before them, and has no place.

    Args:
        rows, columns: of patches.
        patch: height and width of a patch, in pixels.
    """

    rows: int
    columns: int
    patch: int

    @cached_property
    def distances(self) -> tuple[Weights, Weights]:
        """From patch to patch: in pixels along the straight line, and in patches (Chebyshev)."""
        return patch_distances(self.rows, self.columns, self.patch)

    @cached_property
    def masks_FQK(self) -> Mask:
        """The keys of every function for every query; none for the class token's."""
        found = np.zeros((len(PATCH_FUNCTIONS), *(1 + self.rows * self.columns,) * 2), np.bool_)
        for mask_QK, function in zip(found, PATCH_FUNCTIONS.values(), strict=True):
            mask_QK[1:] = function.mask(self)
        return found

    def others(self, alike: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]) -> Mask:
        """Keys that are other patches with the same number by a function of row and column."""
        number = alike(*np.divmod(np.arange(self.rows * self.columns), self.columns))
        return _behind((number[:, None] == number) & (self.distances[1] > 0))


def _behind(mask: Mask) -> Mask:
    """Patches as keys, behind a class token that is none."""
    return np.pad(mask, ((0, 0), (1, 0)))


PATCH_FUNCTIONS: Mapping[str, HeadFunction] = {
    "same_patch": HeadFunction("same patch", "the patch itself", lambda at: _behind(at.distances[1] == 0)),
    "neighbours": HeadFunction(
        "neighbours", "the patches beside it, up to eight", lambda at: _behind(at.distances[1] == 1)
    ),
    "row": HeadFunction("same row", "other patches of its row", lambda at: at.others(lambda row, column: row)),
    "column": HeadFunction(
        "same column", "other patches of its column", lambda at: at.others(lambda row, column: column)
    ),
    "class_token": HeadFunction(
        "class token",
        "the class token, of what patches look at",
        lambda at: np.eye(1, 1 + at.rows * at.columns, dtype=np.bool_),
    ),
}
"""The functions by which a head of a model of images may be named, in the order of their columns."""
OF_IMAGES = HeadMetrics("images", PATCH_FUNCTIONS, tuple(PATCH_FUNCTIONS), {"distance": "pixels", "entropy": "bits"})
"""What is counted in images; ``distance`` is what a patch looks at on average, the class token left out."""


def count_patches(weight_LHQK: Floats, places: PatchPositions) -> HeadCounts:
    """What the heads of all layers attend to in one image.

    A patch that has no key of a function, such as neighbours where there is one patch alone, cannot show it and is left
    out. The mean distance is Dosovitskiy et al.'s: of what goes to patches, as if that were the whole.
    """
    mask_FQK, distance, queries = places.masks_FQK, places.distances[0], weight_LHQK.shape[2]
    sums_LHF = np.einsum("lhqk,fqk->lhf", weight_LHQK, mask_FQK, optimize=True)
    far_LH = np.stack([mean_distance(weight_HQK, distance) for weight_HQK in weight_LHQK]) * len(distance)
    spread_LH = entropy(weight_LHQK).sum(-1)
    return HeadCounts(
        np.concatenate([sums_LHF, far_LH[..., None], spread_LH[..., None]], -1),
        np.array([*mask_FQK.sum((1, 2)) / queries, distance.mean(1).sum(), queries * np.log2(queries)]),
        np.array([*mask_FQK.any(2).sum(1), len(distance), queries], np.float64),
    )
