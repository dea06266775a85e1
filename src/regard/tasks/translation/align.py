"""Words of a text and of its translation that belong together, by the cross-attention of the model that translates.

Words are what stands between blanks. The weight between two words is the mean over the pieces of the target word of
the largest weight on a piece of the source word; pieces without a letter or a digit count only in words that have none.
Attention is read in the step that predicts a piece, or in the next one, which reads it [Chen20 §4.1]; which heads and
steps are best depends on the model, and their mean is better than one. A weight counts by its share of all that the
source word gets, too, so that one word does not take the links of others; both directions agree [Liang06]. A target
word is linked to the source word for which that product is largest.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.data.alignment.hmm import WordAligner
from regard.data.alignment.links import Links, Span, alignment_error_rate, piece_units, piece_words
from regard.decoding.scoring import attend
from regard.decoding.step import with_weights
from regard.system.errors import UsageError
from regard.tasks.engine import own_step_of

if TYPE_CHECKING:
    from regard.tasks.protocols import TargetWriter

Step = Literal["predicts", "reads"]
Weights = NDArray[np.float32]
CHOSEN_BY = 1000
"""Pairs by which a head is chosen at most."""
LEAST = 200
"""Pairs without which no head is chosen."""
MOST = 8
"""Heads whose mean aligns words, at most."""
HELD = 1 << 26
"""Weights between words that are held at most while heads are chosen."""
AT_ONCE = 32
"""Pairs that are read at once."""
NO_LINKS: Links = frozenset()
Owners = Callable[[str, Sequence[Span]], list[int]]
"""From a text and the characters of its pieces to the word or unit of each piece."""
_UNIT = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])[^\W_])+|\S"
)
"""Characters of languages without blanks, runs of letters and digits, and single signs."""
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")


@dataclass(frozen=True)
class AlignmentHead:
    """The attention that shows which words belong together.

    Args:
        layer: of the decoder, from 1.
        head: from 1; 0: the mean of all.
        step: that which predicts a piece, or reads it.
    """

    layer: int
    head: int = 0
    step: Step = "predicts"

    @classmethod
    def parse(cls, name: str) -> AlignmentHead:
        """That which the recipe calls so, as ``2.4 predicts``; ``2 reads`` is the mean of a layer."""
        place, step = name.split()
        layer, _, head = place.partition(".")
        return cls(int(layer), int(head or 0), "reads" if step == "reads" else "predicts")

    @classmethod
    def guided(cls, layers: int) -> AlignmentHead:
        """The head that training guides: the first of the last layer but one, in the step that has read the word."""
        return cls(max(1, layers - 1), 1, "reads")

    def __str__(self) -> str:
        return f"{self.layer}{f'.{self.head}' if self.head else ''} {self.step}"


Heads = tuple[AlignmentHead, ...]
"""Those whose mean aligns words."""


def is_known(recipe: Recipe) -> bool:
    """Whether heads were chosen, or one guided in training."""
    return bool(recipe.decoding.alignment_heads) or recipe.training.guided_alignment > 0


def heads_of(recipe: Recipe, layers: int) -> Heads:
    """Those of the recipe, or that which training guided; else the mean of all layers, in the step that predicts.

    In six models, imported ones among them, that is better than the last layer but one [Garg19 §4.1], or as good.
    """
    if recipe.decoding.alignment_heads:
        return tuple(map(AlignmentHead.parse, recipe.decoding.alignment_heads))
    return (AlignmentHead.guided(layers),) if recipe.training.guided_alignment else usual_heads(layers)


def usual_heads(layers: int) -> Heads:
    """The mean of all layers, in the step that predicts a piece."""
    return tuple(map(AlignmentHead, range(1, layers + 1)))


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without the punctuation around them, unless they are nothing else."""
    return [(_AROUND.sub("", word) or word).lower() for word in text.split()]


def units_of(text: str) -> list[Span]:
    """The characters of words and of single signs; of languages without blanks each letter."""
    return [found.span() for found in _UNIT.finditer(text)]


def unit_weights(task: TargetWriter, pairs: Sequence[tuple[str, str]]) -> Iterator[NDArray[np.float64] | None]:
    """How much the units of each translation belong to those of its text: ``share_JI``, target by source units.

    A row is non-negative and sums to one, or is zero where no piece has the unit. ``None`` where a text is too long to
    be read as a whole, or the tokenizer changes its units.
    """

    def owners(text: str, spans: Sequence[Span]) -> list[int]:
        return piece_units(text, spans, units_of(text))

    layers, _ = task.recipe.model.attention.get("cross", (0, 0))
    heads = heads_of(task.recipe, layers)
    for weight_SLHJI in _weights(task, pairs, owners, lambda text: len(units_of(text)), {head.step for head in heads}):
        if weight_SLHJI is None:
            yield None
            continue
        both_JI = _both(_mean(weight_SLHJI, heads)).astype(np.float64)
        yield both_JI / np.maximum(both_JI.sum(1, keepdims=True), 1e-9)


def align(task: TargetWriter, texts: Sequence[str], translations: Sequence[str], first: int = 1) -> list[Links]:
    """The links of each text and its translation; none where one of them is empty."""
    found, given = [NO_LINKS] * len(texts), list(zip(texts, translations, strict=True))
    places = [place for place, pair in enumerate(given) if pair[0].split() and pair[1].split()]
    weights = _word_weights(task, [given[place] for place in places], [first + place for place in places])
    for place, weight_SLHJI in zip(places, weights, strict=True):
        if weight_SLHJI is not None:
            found[place] = _links(_mean(weight_SLHJI, heads_of(task.recipe, weight_SLHJI.shape[1])))
    return found


def choose_heads(task: TargetWriter, texts: Sequence[str], translations: Sequence[str]) -> tuple[Heads, float, float]:
    """The heads whose links are most like those of a lexical model, which is learned from all the pairs.

    The best head is first; then that which helps most is added, up to :data:`MOST`, of which the best mean is taken.

    Returns:
        The heads, and how many of both's links agree (F1, 0 to 1): their own, and those of the usual choice.

    Raises:
        UsageError: there are too few pairs.
    """
    if len(texts) < LEAST:
        raise UsageError(f"{len(texts)} pairs are too few to choose heads by; {LEAST} are needed", "pairs")
    sources, targets = list(map(words_of, texts)), list(map(words_of, translations))
    known = WordAligner(sources, targets).align(sources[:CHOSEN_BY], targets[:CHOSEN_BY])
    pairs = list(zip(texts[:CHOSEN_BY], translations[:CHOSEN_BY], strict=True))
    places = [place for place, links in enumerate(known) if links]
    weights = _word_weights(task, [pairs[place] for place in places], [place + 1 for place in places])
    held: list[tuple[Weights, Links]] = []
    left = HELD
    for place, weight_SLHJI in zip(places, weights, strict=True):
        if weight_SLHJI is not None and left > 0:
            held.append((weight_SLHJI, known[place]))
            left -= weight_SLHJI.size
    if not held:
        raise UsageError("no pair has links by which heads could be chosen", "pairs")
    _, layers, heads, _, _ = held[0][0].shape
    every = product(get_args(Step), range(1, layers + 1), range(heads + 1))
    chosen, best = _grown(held, [AlignmentHead(layer, head, step) for step, layer, head in every])
    usual = usual_heads(layers)
    return chosen, best, _agreement([_links(_mean(weight_SLHJI, usual)) for weight_SLHJI, _ in held], held)


def _agreement(found: Sequence[Links], held: Sequence[tuple[Weights, Links]]) -> float:
    return 1 - alignment_error_rate(found, [(links, links) for _, links in held])


def _grown(held: Sequence[tuple[Weights, Links]], every: Sequence[AlignmentHead]) -> tuple[Heads, float]:
    """The heads that agree most, and how much they do.

    One is added after the other, that which helps most, even if none does: two may help where one does not. Those that
    came after the best are left out.
    """
    chosen, found = list[AlignmentHead](), list[float]()
    sums: list[Weights] = [np.zeros_like(weight_SLHJI[0, 0, 0]) for weight_SLHJI, _ in held]

    def with_head(head: AlignmentHead) -> list[Weights]:
        return [sum_JI + _of_head(weight_SLHJI, head) for sum_JI, (weight_SLHJI, _) in zip(sums, held, strict=True)]

    for _ in range(min(MOST, len(every))):
        more = {head: _agreement([*map(_links, with_head(head))], held) for head in every if head not in chosen}
        chosen.append(max(more, key=more.__getitem__))
        found.append(more[chosen[-1]])
        sums = with_head(chosen[-1])
    best = max(found)
    return tuple(chosen[: found.index(best) + 1]), best


def _of_head(weight_SLHJI: Weights, head: AlignmentHead) -> Weights:
    """``weight_JI`` of a head.

    Raises:
        UsageError: there is no such head.
    """
    _, layers, heads, _, _ = weight_SLHJI.shape
    if head.layer > layers or head.head > heads:
        message = f"there is no head {head}; the decoder has {layers} layers of {heads} heads"
        raise UsageError(message, "decoding.alignment_heads")
    weight_HJI: Weights = weight_SLHJI[get_args(Step).index(head.step), head.layer - 1]
    return weight_HJI[head.head - 1] if head.head else weight_HJI.mean(0)


def _mean(weight_SLHJI: Weights, heads: Heads) -> Weights:
    return np.mean([_of_head(weight_SLHJI, head) for head in heads], axis=0)


def _links(weight_JI: Weights) -> Links:
    """Each target word and the source word to which it gives, and of which it gets, most; the first of equal ones."""
    best_J = _both(weight_JI).argmax(1).tolist()
    return frozenset((best_J[j], j) for j in np.flatnonzero(weight_JI.max(1) > 0).tolist())


def _both(weight_JI: Weights) -> Weights:
    """Weights by their share of all that a source word gets, too."""
    return weight_JI * weight_JI / np.maximum(weight_JI.sum(0), 1e-9)


def _word_weights(
    task: TargetWriter, pairs: Sequence[tuple[str, str]], numbers: Sequence[int]
) -> Iterator[Weights | None]:
    """Those between the words of each pair; where it has none the line is told."""
    found = _weights(task, pairs, piece_words, lambda text: len(text.split()), set(get_args(Step)))
    for number, weight_SLHJI in zip(numbers, found, strict=True):
        if weight_SLHJI is None:
            warnings.warn(f"line {number} is normalised to other words, and gets no links", stacklevel=5)
        yield weight_SLHJI


def _weights(
    task: TargetWriter,
    pairs: Sequence[tuple[str, str]],
    owners: Owners,
    count: Callable[[str], int],
    wanted: Set[str],
) -> Iterator[Weights | None]:
    """``weight_SLHJI`` between the units of each pair: steps, layers, heads, target units, source units.

    ``None`` where a text is too long to be read as a whole, or has another number of units once it is normalised.

    Args:
        owners: the unit of each piece of a text.
        count: how many units a text has.
        wanted: the steps whose weights are computed; those of others are 0.
    """
    step, symbols, room = with_weights(own_step_of(task)), task.symbols, task.recipe.decoding.tokens
    _, heads = task.recipe.model.attention.get("cross", (0, 0))
    if not heads:
        raise UsageError("aligns no words, as it has no attention between source and output", "the model")
    most, extra = task.recipe.data.max_tokens, task.recipe.decoding.max_extra
    for begin in range(0, len(pairs), AT_ONCE):
        some = pairs[begin : begin + AT_ONCE]
        reads = [(task.reads(text), task.reads_target(translation)) for text, translation in some]
        able = [len(read) <= most + 1 and len(written) <= most + extra for (_, read), (_, written) in reads]
        sources = [np.array([id for id, _, _ in read]) for ((_, read), _), one in zip(reads, able, strict=True) if one]
        outputs = [
            np.array([*(id for id, _, _ in written), symbols.end])
            for (_, (_, written)), one in zip(reads, able, strict=True)
            if one
        ]
        weights = iter(attend(step, sources, outputs, symbols.start, room))
        for pair, (read, written), one in zip(some, reads, able, strict=True):
            weight_HQK, sizes = next(weights) if one else None, [count(text) for text in pair]
            if weight_HQK is None or sizes != [count(read[0]), count(written[0])]:
                yield None
                continue
            weight_LHQK = weight_HQK.reshape(-1, heads, *weight_HQK.shape[1:])
            word_K, word_Q = (owners(one, [span[1:] for span in spans]) for one, spans in (read, written))
            found = np.zeros((2, *weight_LHQK.shape[:2], *sizes[::-1]), np.float32)
            for place, name in enumerate(get_args(Step)):
                if name in wanted:
                    found[place] = _between(weight_LHQK[:, :, place : place - 1 or None], word_Q, word_K, sizes)
            yield found


def _between(weight_LHQK: Weights, word_Q: Sequence[int], word_K: Sequence[int], sizes: Sequence[int]) -> Weights:
    """``weight_LHJI``: the largest over a source word's pieces, the mean over a target word's; 0 without pieces."""
    words_I, words_J = sizes
    largest_LHQI = np.zeros((*weight_LHQK.shape[:3], words_I), np.float32)
    for piece, word in enumerate(word_K):
        if word >= 0:
            np.maximum(largest_LHQI[..., word], weight_LHQK[..., piece], out=largest_LHQI[..., word])
    is_of_QJ = np.asarray(word_Q)[:, None] == np.arange(words_J)
    mean_QJ = (is_of_QJ / np.maximum(is_of_QJ.sum(0), 1)).astype(np.float32)
    return np.einsum("lhqi,qj->lhji", largest_LHQI, mean_QJ)
