"""What speaks against a translation: words left out, loops, copies, an unusual length, improbable tokens.

Each feature is a number that a damaged translation has more of, and is compared with what is usual: what only
:data:`UNUSUAL` of the validation references exceed. Thresholds are fitted to references because these are sound, and
hold for given translations as for the model's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from regard.decoding.scoring import force
from regard.decoding.step import with_weights
from regard.tasks.engine import own_step_of
from regard.text.tags import Place, places_of

if TYPE_CHECKING:
    from regard.tasks.protocols import Read, TargetWriter

Kind = Literal["omission", "repetition", "copy", "long", "short", "improbable"]
Floats = NDArray[np.float64]
UNUSUAL = 0.01
"""Share of the validation references that exceed a threshold."""
FEW = 100
"""Pairs that thresholds are fitted to at least."""
WORDS: Mapping[Kind, str] = {
    "omission": "words that nothing was written for",
    "repetition": "repeated",
    "copy": "left as in the source",
    "long": "longer than usual",
    "short": "shorter than usual",
    "improbable": "improbable",
}
"""Each kind as a person reads it."""
SHOWN = 3
"""Places of a kind that a sentence names at most."""
UNCOVERED = 0.3
"""A source word that was attended to less than this, summed over the output, is named as left out."""
LEAST = {"omission": 0.1, "repetition": 0.15, "copy": 0.2, "long": 0.1, "short": 0.1, "improbable": 0.1}
"""The smallest thresholds: where validation has no loops or copies, a word or two are no sign yet."""
DEFAULT: Mapping[str, float] = {
    "ratio": 0.0,
    "omission": 0.45,
    "repetition": 0.15,
    "copy": 0.2,
    "long": 0.7,
    "short": 0.7,
    "improbable": 5.0,
}
"""Thresholds where nothing was fitted: those of small translators, and lengths of any pair of languages."""


@dataclass(frozen=True)
class ForcedPass:
    """What a model says of a pair that it was given.

    Args:
        source_places, output_places: characters of each piece; a symbol has none.
        coverage_S: attention that each source piece got, summed over the output's tokens, the mean of all heads; NaN
            where the model has no attention between both.
        log_probability_T: of each output piece.
        log_probability: the mean of these and of the end's.
    """

    source_places: Sequence[Place]
    output_places: Sequence[Place]
    coverage_S: Floats
    log_probability_T: Floats
    log_probability: float


Pair = tuple[str, str, ForcedPass | None]
"""A source, an output, and what the model says of them, if it read both."""


@dataclass(frozen=True)
class Feature:
    """How much of a damage there is.

    Args:
        kind: omission, repetition, copy, long, short or improbable.
        value: how much: of an omission the mean of ``-log(min(1, coverage))`` over the source's words; of a repetition
            and a copy the share of the output's words; of a length the logarithm of words per source word, beyond the
            usual; of improbable tokens the mean of their negative log-probabilities.
        threshold: what the value may usually be.
        side: which text ``places`` are of.
        places: from each character to before each: words left out, repeated, copied, or the most improbable one.
    """

    kind: Kind
    value: float
    threshold: float
    side: Literal["source", "output"]
    places: tuple[Place, ...] = ()

    @property
    def share(self) -> float:
        """Of the threshold; more than 1 is unusual."""
        return max(0.0, self.value / self.threshold)


@dataclass(frozen=True)
class GuardReport:
    """What speaks against a translation.

    Args:
        features: all of them.
        source, output: the texts that places are of, as the tokenizers have them.
        fitted: whether the thresholds were fitted to validation texts.
        read: whether the model read the pair; a longer text is judged by its words alone.
    """

    features: tuple[Feature, ...]
    source: str
    output: str
    fitted: bool
    read: bool

    @property
    def score(self) -> float:
        """The sum of all features, each in its threshold: 0 is sound."""
        return sum(one.share for one in self.features)

    @property
    def warnings(self) -> tuple[Feature, ...]:
        """The features above their thresholds, the strongest first."""
        return tuple(sorted((one for one in self.features if one.share > 1), key=lambda one: -one.share))

    def texts(self, feature: Feature) -> list[str]:
        """What stands at the places of a feature."""
        text = self.source if feature.side == "source" else self.output
        return [text[slice(*place)] for place in feature.places]

    @property
    def sentence(self) -> str:
        """The warnings in words; empty where there are none."""
        told = []
        for one in self.warnings:
            quoted = ", ".join(f"“{text}”" for text in self.texts(one)[:SHOWN])
            told.append(f"{WORDS[one.kind]}{': ' if quoted else ''}{quoted}")
        return "; ".join(told)

    def to_dict(self) -> dict[str, object]:
        """As plain values for JSON."""
        warnings = [
            {
                "kind": one.kind,
                "value": round(one.value, 4),
                "threshold": one.threshold,
                "side": one.side,
                "places": [
                    {"text": text, "begin": begin, "end": end}
                    for text, (begin, end) in zip(self.texts(one), one.places, strict=True)
                ],
            }
            for one in self.warnings
        ]
        return {"score": round(self.score, 4), "warnings": warnings, "fitted": self.fitted, "read": self.read}


@dataclass(frozen=True)
class Attempt:
    """A search for a translation: how it differed from the first, and what came of it."""

    settings: tuple[str, ...]
    text: str
    score: float


def judge(source: str, output: str, forced: ForcedPass | None, thresholds: Mapping[str, float]) -> GuardReport:
    """What speaks against an output.

    Args:
        source, output: the texts.
        forced: what the model says of them; ``None``: nothing.
        thresholds: of each kind, and the usual ``ratio`` of lengths; empty: :data:`DEFAULT`.
    """
    usual = thresholds or DEFAULT
    ratio = length_ratio(source, output) - usual["ratio"]
    found = [*_of_words(source, output), ("long", ratio, ()), ("short", -ratio, ())]
    found += _of_model(source, output, forced) if forced else []
    features = (
        Feature(kind, round(value, 6), usual[kind], "source" if kind == "omission" else "output", places)
        for kind, value, places in found
    )
    return GuardReport(tuple(features), source, output, bool(thresholds), forced is not None)


def word_faults(source: str, output: str) -> set[Kind]:
    """``copy`` and ``repetition``, where an output has more of it than :data:`DEFAULT`."""
    return {kind for kind, value, _ in _of_words(source, output) if value > DEFAULT[kind]}


def fit(pairs: Iterable[Pair]) -> dict[str, float]:
    """Thresholds by sound pairs, to four digits; none where they are too few.

    Args:
        pairs: source, reference, and what the model says of them.
    """
    given = list(pairs)
    if len(given) < FEW:
        return {}
    ratio = float(np.median([length_ratio(source, output) for source, output, _ in given]))
    judged = [judge(*pair, {**DEFAULT, "ratio": ratio}) for pair in given]

    def usual(kind: str) -> float:
        values = [one.value for report in judged for one in report.features if one.kind == kind]
        found = 1.0005 * float(np.quantile(values, 1 - UNUSUAL)) if values else DEFAULT[kind]  # rounded up
        return max(LEAST[kind], found)

    return {name: float(f"{value:.4g}") for name, value in {"ratio": ratio, **{k: usual(k) for k in LEAST}}.items()}


def length_ratio(source: str, output: str) -> float:
    """The logarithm of the output's words over the source's."""
    return float(np.log(max(1, len(places_of(output))) / max(1, len(places_of(source)))))


def forced_passes(task: TargetWriter, sources: Sequence[str], outputs: Sequence[str]) -> list[Pair]:
    """Sources and outputs as the tokenizers have them, and what a translator says of each pair.

    Returns:
        Nothing of the model where there is no source, or a text is longer than it reads at once.
    """
    reads, writes = list(map(task.reads, sources)), list(map(task.reads_target, outputs))
    most, extra = task.recipe.data.max_tokens, task.recipe.decoding.max_extra
    found: list[Pair] = [(source, output, None) for (source, _), (output, _) in zip(reads, writes, strict=True)]
    able = [
        place
        for place, (source, output, _) in enumerate(found)
        if source.strip() and len(reads[place][1]) <= most + 1 and len(writes[place][1]) <= most + extra
    ]
    passes = _read(task, [reads[place][1] for place in able], [writes[place][1] for place in able])
    for place, forced in zip(able, passes, strict=True):
        found[place] = (*found[place][:2], forced)
    return found


def _read(task: TargetWriter, reads: Sequence[list[Read]], writes: Sequence[list[Read]]) -> list[ForcedPass]:
    sources = [np.array([id for id, _, _ in read]) for read in reads]
    outputs = [np.array([*(id for id, _, _ in written), task.symbols.end]) for written in writes]
    coverage, own = [np.zeros(len(ids)) for ids in sources], [np.zeros(len(ids)) for ids in outputs]
    step, skip = with_weights(own_step_of(task)), len(task.symbols.prefix)
    for pairs, place, token_N, answer in force(step, sources, outputs, task.symbols.start, task.recipe.decoding.tokens):
        weight_NHS, log_probability_N = answer.context(), answer.of(token_N)
        mean_NS = np.full((len(pairs), 1), np.nan) if weight_NHS is None else weight_NHS.mean(1)
        for index, mean_S, log_probability in zip(pairs, mean_NS, log_probability_N.tolist(), strict=True):
            coverage[index] += mean_S[: len(coverage[index])]
            own[index][place] = log_probability
    return [
        ForcedPass(_places(read), _places(written[skip:]), coverage_S, own_T[skip:-1], float(own_T[skip:].mean()))
        for read, written, coverage_S, own_T in zip(reads, writes, coverage, own, strict=True)
    ]


def _places(read: Sequence[Read]) -> list[Place]:
    return [(begin, end) for _, begin, end in read]


Found = tuple[Kind, float, tuple[Place, ...]]


def _of_words(source: str, output: str) -> list[Found]:
    """Repetitions and copies."""
    places = places_of(output)
    read, said = ([text[slice(*place)] for place in places_of(text)] for text in (source, output))
    again, copied = mark_repetitions([word.casefold() for word in said]), _mark_copies(read, said)
    more = max(0, int(again.sum()) - int(mark_repetitions([word.casefold() for word in read]).sum()))
    words = max(1, len(said))
    repeated = _join(places, again) if more else ()
    return [("repetition", more / words, repeated), ("copy", int(copied.sum()) / words, _join(places, copied))]


def mark_repetitions(words: Sequence[str]) -> NDArray[np.bool_]:
    """Which words repeat: one or two that follow themselves, and three that stood in this order before."""
    mark_W = np.zeros(len(words), np.bool_)
    for size in (1, 2):
        for place in range(size, len(words) - size + 1):
            if words[place : place + size] == words[place - size : place]:
                mark_W[place : place + size] = True
    first: dict[tuple[str, ...], int] = {}
    for place in range(len(words) - 2):
        begun = first.setdefault(tuple(words[place : place + 3]), place)
        if place >= begun + 3:
            mark_W[place : place + 3] = True
    return mark_W


def _mark_copies(read: Sequence[str], said: Sequence[str]) -> NDArray[np.bool_]:
    """Which words stand beside each other as in the source, pairs of names and numbers apart."""
    pairs, mark_W = set(itertools.pairwise(read)), np.zeros(len(said), np.bool_)
    for place, pair in enumerate(itertools.pairwise(said)):
        if pair in pairs and any(word.isalpha() and not word[0].isupper() for word in pair):
            mark_W[place : place + 2] = [any(map(str.isalnum, word)) for word in pair]
    return mark_W


def _of_model(source: str, output: str, forced: ForcedPass) -> list[Found]:
    """Omissions and improbable tokens."""
    found: list[Found] = []
    words = [place for place in places_of(source) if any(map(str.isalnum, source[slice(*place)]))]
    if words and not np.isnan(forced.coverage_S).any():
        coverage_W = of_words(words, forced.source_places, forced.coverage_S, np.sum)
        missing = float(-np.log(coverage_W.clip(1e-4, 1.0)).mean())
        found.append(("omission", missing, _join(words, coverage_W < UNCOVERED)))
    places = places_of(output)
    least_W = of_words(places, forced.output_places, forced.log_probability_T, np.min)
    worst = (places[int(least_W.argmin())],) if places else ()
    return [*found, ("improbable", -forced.log_probability, worst)]


def of_words(
    words: Sequence[Place], pieces: Sequence[Place], value_T: Floats, joined: Callable[[Floats], float]
) -> Floats:
    """The values of the pieces of each word as one; 0 where it has none."""
    begin_T, end_T = np.array(pieces, np.int64).reshape(-1, 2).T
    own = (value_T[(begin_T < end) & (begin < end_T)] for begin, end in words)
    return np.array([joined(value) if len(value) else 0.0 for value in own], np.float64)


def _join(places: Sequence[Place], mark_W: NDArray[np.bool_]) -> tuple[Place, ...]:
    """From the first character to behind the last of each stretch of marked words."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mark_W, [False]]).astype(np.int8)))
    return tuple((places[begin][0], places[end - 1][1]) for begin, end in edges.reshape(-1, 2).tolist())
