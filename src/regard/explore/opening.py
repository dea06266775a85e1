"""The head that a page begins with: it does something for a word that matters, and looks sharply at another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.explore.asked import Asked, Without
from regard.explore.kinds import Kind, within
from regard.explore.models import Loaded, Models
from regard.explore.owing import is_number, likeliest, scored
from regard.explore.passes import Pass, scene_of
from regard.explore.record import Record
from regard.explore.said import SAYING
from regard.explore.scene import Scene
from regard.explore.searches import GOES_ON, SEARCHED
from regard.explore.tokens import by_word, words
from regard.text.schemes import OUTSIDE

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Read = Callable[["Tensor"], Floats]
Words = Sequence[tuple[str, list[int]]]

WORK = 3e9
"""Parameters times tokens over all passes that are made to choose: a quarter of a second of one core, about."""
PASSES = 64
"""At most, however small a model is."""
POINTS = 0.05
"""A word that stands for another is taken before others if it loses so much of its probability without some head."""
LEAST = 0.01
"""Where no word loses as much, the head is taken that looks most sharply."""
ARTICLES = re.compile(
    r"(the|an?|der|die|das|den|dem|des|eine?[mnrs]?|le|la|les|une?|des|il|lo|gli|i|el|los|las|una|de|het|een|o|os|as|um|uma)",
    re.IGNORECASE,
)
POINTERS = re.compile(r"(it|he|she|they|them|him|its|er|sie|es|ihn|ihm|il|elle|lui|ella|él)", re.IGNORECASE)
"""Words that stand for others; who reads wants to know for which."""
_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class Opening:
    """Where a page begins: a head, counted from 1, and the row of a word that looks, among whole words."""

    layer: int
    head: int
    query: int


@dataclass(frozen=True)
class _Row:
    """A word that looks: its number; the word that is said there, and its places, none of a text that is judged."""

    number: int
    word: str
    places: tuple[int, ...]


def opening(models: Models, loaded: Loaded, asked: Asked, one: Pass, kind: Kind) -> Opening | None:
    """The head of a kind that a page begins with; ``None`` where no word looks at another.

    Of all words and heads it is those with the largest product of two shares: how much of the probability of what is
    said there is lost without the head, and how much of its look the head gives to one other word. Articles and marks
    are no words that matter, and within a text a word's neighbours are no others. Of a large model the heads alone are
    tried that look most sharply.

    Args:
        asked: what the pass is of; ``one``: the pass.
        kind: of attention.
    """
    if kind == "pool" or asked.image is not None or asked.pixels is not None:
        return None
    record = one.record
    queries, keys = _words(record, kind)
    with asked.without.changes.made(loaded.task.recipe.model):
        seen = scene_of(models, loaded, asked)
    rows = _rows(seen, one, kind, queries)
    if not rows:
        return None
    sharp_LHR = np.stack([_sharp(weight_HQK, kind, rows, queries, keys) for weight_HQK in record.weights[kind]])
    found_LHR = sharp_LHR * _falls(seen, asked.without, kind, rows, sharp_LHR)
    pointing = [bool(POINTERS.fullmatch(row.word)) for row in rows]
    for some_R, least in ((np.array(pointing), POINTS), (np.ones(len(rows), np.bool_), LEAST)):
        if (found_LHR * some_R).max() >= least:
            return _at(found_LHR * some_R, rows)
    if not sharp_LHR.any():
        return None
    return _at(sharp_LHR * (sharp_LHR.mean(axis=2) == sharp_LHR.mean(axis=2).max())[..., None], rows)


def _at(value_LHR: Floats, rows: Sequence[_Row]) -> Opening:
    layer, head, row = map(int, np.unravel_index(value_LHR.argmax(), value_LHR.shape))
    return Opening(layer + 1, head + 1, rows[row].number)


def _words(record: Record, kind: Kind) -> tuple[Words, Words]:
    """The words that look, and those that are looked at."""
    query_text = record.source_text if kind == "encoder" else record.target_text
    key_text = record.target_text if kind == "decoder" else record.source_text
    return words(record.queries(kind), query_text), words(record.keys(kind), key_text)


def _matters(word: str) -> bool:
    return _WORD.match(word) is not None and ARTICLES.fullmatch(word) is None


def _rows(seen: Scene, one: Pass, kind: Kind, queries: Words) -> list[_Row]:
    """The words that look, each with what is said there: where nothing is, with all that is said of the text."""
    task, record = seen.task, one.record
    tokens = record.queries(kind)
    there = [
        (n, word, places)
        for n, (word, places) in enumerate(queries)
        if all(tokens[place].end > tokens[place].start for place in places)
    ]
    plain = [one for one in there if _matters(one[1])]
    if task.name in SEARCHED and kind == "encoder":
        return [_Row(n, word, tuple(range(len(seen.written)))) for n, word, _ in plain]
    if task.name == GOES_ON or (task.name in SEARCHED and kind == "decoder"):
        behind = int(task.name == GOES_ON)  # where a decoder reads a word it writes the next
        said = {places[0]: (word, tuple(places)) for word, places in words(record.written, record.target_text)}
        found = [(n, said.get(places[-1] + behind)) for n, _, places in there]
        return [_Row(n, *next_) for n, next_ in found if next_ is not None and _matters(next_[0])]
    if task.name == "masked-lm":
        gaps = [
            (n, word, places) for n, (word, places) in enumerate(queries) if seen.written_ids[places[0]] == task.mask
        ]
        plain = gaps or plain
    if task.name == "tagging":
        named = {tag["end"] for tag in one.output["tags"] if tag["tag"] != OUTSIDE}
        plain = [found for found in plain if tokens[found[2][-1]].end in named] or plain
    whole = task.name in ("classification", "encoding")
    return [_Row(n, word, () if whole else tuple(places)) for n, word, places in plain]


def _sharp(weight_HQK: NDArray[Any], kind: Kind, rows: Sequence[_Row], queries: Words, keys: Words) -> Floats:
    """``sharp_HR``: the most that each row gives to one other word that matters."""
    query_places, key_places = [places for _, places in queries], [places for _, places in keys]
    matters_K = np.array([_matters(word) for word, _ in keys])
    numbers = [row.number for row in rows]
    far_RK = np.abs(np.array(numbers)[:, None] - np.arange(len(keys))) > 1 if within(kind) else True
    worded = (by_word(weight_QK, query_places, key_places)[numbers] for weight_QK in weight_HQK)
    return np.stack([(weight_RK * matters_K * far_RK).max(axis=1) for weight_RK in worded]).astype(np.float64)


def _falls(seen: Scene, without: Without, kind: Kind, rows: Sequence[_Row], sharp_LHR: Floats) -> Floats:
    """``fall_LHR``: what is lost of the probability of what each row says, without each head of a kind.

    Of a large model the sharpest heads are tried alone, and nothing is lost without the others.
    """
    fall_LHR = np.zeros_like(sharp_LHR)
    task = seen.task
    size = sum(weight.numel() for weight in task.model.parameters())
    most = min(PASSES, int(WORK / (size * (len(seen.source) + len(seen.written)))))
    if task.name == "encoding" or is_number(task) or most < 2:
        return fall_LHR
    read = _reader(seen, rows)
    sharpest = np.argsort(-sharp_LHR.max(axis=2), axis=None, kind="stable")[: most - 1]
    whole_R = _without(seen, without, read)
    for place in sorted(sharpest.tolist()):
        layer, head = map(int, np.unravel_index(place, sharp_LHR.shape[:2]))
        one = replace(without, off=(*without.off, (kind, layer + 1, head + 1)))
        fall_LHR[layer, head] = np.maximum(0, whole_R - _without(seen, one, read))
    return fall_LHR


def _without(seen: Scene, without: Without, read: Read) -> Floats:
    import torch

    from regard.models.reading import evaluating

    with torch.inference_mode(), evaluating(seen.task.model), without.changes.made(seen.task.recipe.model):
        return np.nan_to_num(read(seen.run()))


def _reader(seen: Scene, rows: Sequence[_Row]) -> Read:
    """From ``hidden_TD`` of a pass to the probability of what each row says."""
    if seen.task.name in SAYING:
        return _of_pieces(seen, [row.places for row in rows])
    places = [row.places[0] if row.places else None for row in rows]
    scores = {place: scored(seen, place, None) for place in places}

    def read(hidden_TD: Tensor) -> Floats:
        found = {place: exp(float(score(hidden_TD))) for place, score in scores.items()}
        return np.array([found[place] for place in places])

    return read


def _of_pieces(seen: Scene, places: Sequence[Sequence[int]]) -> Read:
    """Of the pieces that are written at some places; of gaps those that are most probable at first."""
    task, ids = seen.task, list(seen.written_ids)
    behind = int(task.name == GOES_ON)  # a language model says a piece one place before it

    def read(hidden_TD: Tensor) -> Floats:
        import torch

        score_TV = SAYING[task.name](task.model, hidden_TD).double()
        if task.name == "masked-lm":
            for place in (place for place, id in enumerate(ids) if id == task.mask):
                ids[place] = likeliest(task, score_TV[place])
        said_T = torch.tensor([*ids[behind:], *[0] * behind], device=score_TV.device)
        log_T = (score_TV.gather(1, said_T[:, None])[:, 0] - score_TV.logsumexp(1)).cpu().numpy()
        return np.array([exp(sum(log_T[place - behind] for place in some)) for some in places])

    return read
