"""A forward pass as the page reads it: tokens, words, thumbnails of all heads, weights; and the head shown first.

That is a sharp head whose ablation lowers the probability of a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from math import exp
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward.outputs import PIECES, piece_scores
from regard.inspection.forward.passes import ForwardPass, bytes_of, forward_pass, inputs_of
from regard.inspection.forward.record import (
    AttentionRecord,
    Kind,
    ModelInputs,
    Token,
    Weights,
    Words,
    by_word,
    downsample,
    is_self_attention,
    measures,
    rollout,
    words,
)
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.questions.attribution import explained_score, is_number, most_probable_piece, read_ablated
from regard.inspection.requests import AblationRequest, Answer, Number, Places, Request, question
from regard.system.errors import UsageError
from regard.tasks.kinds import fills_words
from regard.text.tags import OUTSIDE

if TYPE_CHECKING:
    from torch import Tensor

SIDE = 64
"""Most rows and columns of a thumbnail."""
FEW = 1 << 18
"""Most weights per response."""
SIDES: dict[str, tuple[str, str]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("written", "source"),
    "pool": ("whole", "source"),
}
"""The sides of queries and keys."""
Merge = Literal["head", "mean", "max", "rollout"]

Arrays = Mapping[str, NDArray[np.generic]]
Floats = NDArray[np.float64]
Read = Callable[["Tensor"], Floats]

WORK = 3e9
"""Parameters × tokens summed over all ablation passes: about a quarter of a second on one core."""
PASSES = 64
"""Most ablation passes, however small the model."""
POINTS = 0.05
"""A pronoun is preferred if some head's ablation costs it at least this much of its probability."""
LEAST = 0.01
"""If no word loses this much, the sharpest head is chosen."""
ARTICLES = re.compile(
    r"(the|an?|der|die|das|den|dem|des|eine?[mnrs]?|le|la|les|une?|des|il|lo|gli|i|el|los|las|una|de|het|een|o|os|as|um|uma)",
    re.IGNORECASE,
)
POINTERS = re.compile(r"(it|he|she|they|them|him|its|er|sie|es|ihn|ihm|il|elle|lui|ella|él)", re.IGNORECASE)
"""Pronouns and similar words, whose antecedent a reader wants to see."""
_WORD = re.compile(r"\w")


@question
def look(models: Models, asked: Request, opening: Literal["", Kind] = "") -> Answer:
    """A whole forward pass for display, and the first head to show of the requested kind."""
    cut = fit_request(models, asked)
    one = forward_pass(models, cut.asked)
    values, arrays = pass_values(one)
    found = first_head(models, cut.asked, one, opening) if opening in one.record.kinds else None
    values |= {**cut.values, "opening": found and asdict(found)}
    every = every_weight(one.record)
    few = sum(array.size for array in every.values()) <= FEW
    return values, {**arrays, **every} if few else arrays


def pass_values(one: ForwardPass) -> tuple[dict[str, object], Arrays]:
    """A pass without its full weights: values, thumbnails and measures of all heads, and image pixels."""
    record = one.record
    there = record.kinds
    sides = {"source": record.source, "target": record.target, "written": record.written}
    texts = {"source": record.source_text, "target": record.target_text, "written": record.target_text}
    if "pool" in there:
        sides["whole"], texts["whole"] = record.queries("pool"), ""
    values: dict[str, object] = {
        "source_text": record.source_text,
        "target_text": record.target_text,
        **{side: token_values(tokens) for side, tokens in sides.items()},
        "words": {side: [list(word) for word in words(tokens, texts[side])] for side, tokens in sides.items()},
        "kinds": {
            kind: {"layers": len(layers), "heads": len(layers[0]), "queries": SIDES[kind][0], "keys": SIDES[kind][1]}
            for kind, layers in ((kind, record.weights[kind]) for kind in there)
        },
        "output": one.output,
        "said": None if one.said is None else [[asdict(each) for each in some] for some in one.said],
        "probability": one.probability,
        "unseen": None if one.unseen is None else [list(astuple(word)) for word in one.unseen],
        "confidence": one.confidence,
        "unsure": one.unsure,
        "branch": None if one.branch is None else list(one.branch),
        "image": None if one.grid is None else {"rows": one.grid[0], "columns": one.grid[1], "label": one.label},
    }
    arrays = {name: array for kind in there for name, array in _pictures(record, kind, one.grid).items()}
    return values, arrays if one.pixels is None else {**arrays, "pixels": one.pixels}


def every_weight(record: AttentionRecord) -> Arrays:
    """``weight_LHQK`` of every kind of attention."""
    return {f"weights.{kind}": np.stack(record.weights[kind]).astype(np.float32) for kind in record.kinds}


@question
def head(
    models: Models,
    asked: Request,
    kind: Kind,
    merge: Merge = "head",
    layer: Number | None = None,
    head: Number | None = None,
) -> Answer:
    """The weights of one head, or of several merged."""
    record = forward_pass(models, asked).record
    return {}, {"weight": merge_heads(record, kind, merge, layer, head).astype(np.float32)}


@question
def row(models: Models, asked: Request, kind: Kind, places: Places = ()) -> Answer:
    """``weight_LHK``: the weights of every head from one query, or averaged over several."""
    record = forward_pass(models, asked).record
    there = len(record.layer(kind, 1)[0])
    if not places or max(places) >= there:
        raise UsageError(f"tokens that look are named by their places, from 0 to {there - 1}", "places")
    found = [weight_HQK[:, places].mean(axis=1) for weight_HQK in record.weights[kind]]
    return {}, {"weight": np.stack(found).astype(np.float32)}


def merge_heads(record: AttentionRecord, kind: Kind, merge: Merge, layer: int | None, head: int | None) -> Weights:
    """``weight_QK`` of one head; the mean or maximum over a layer's heads or all heads; or their rollout.

    Args:
        record: one pass.
        kind: of attention.
        merge: one head, or how several become one.
        layer: counted from 1; ``None``: all, and of a rollout up to the last.
        head: counted from 1, where one is looked at.

    Raises:
        UsageError: there is no such layer or head, or nothing that rolls out.
    """
    if merge == "head":
        if layer is None or head is None:
            raise UsageError("a head is named by its layer and its number", "head")
        return record.head(kind, layer, head)
    one = record.layer(kind, 1 if layer is None else layer)
    if merge == "rollout":
        if not is_self_attention(kind):
            raise UsageError("only within one text can attention be followed from layer to layer", "merge")
        return rollout(record.weights[kind][:layer])
    every_HQK = np.concatenate(record.weights[kind]) if layer is None else one
    return np.asarray(every_HQK.mean(axis=0) if merge == "mean" else every_HQK.max(axis=0))


def token_values(tokens: Sequence[Token]) -> list[dict[str, object]]:
    """Tokens as plain values; a token that covers no characters is special."""
    return [{**asdict(token), "special": token.special} for token in tokens]


def _pictures(record: AttentionRecord, kind: Kind, grid: tuple[int, int] | None) -> Arrays:
    """Thumbnails of every head, their largest values, and head measures."""
    special = [token.special for token in record.keys(kind)]
    pictures = np.stack([downsample(weight_HQK, SIDE) for weight_HQK in record.weights[kind]])
    largest = pictures.max(axis=(2, 3))
    each = [measures(weight_HQK, special, grid) for weight_HQK in record.weights[kind]]
    told = [np.stack([one.entropy_H, one.distance_H, one.special_H], axis=-1) for one in each]
    return {
        f"small.{kind}": bytes_of(pictures / np.where(largest > 0, largest, 1)[:, :, None, None]),
        f"largest.{kind}": largest.astype(np.float32),
        f"measures.{kind}": np.stack(told).astype(np.float32),
    }


@dataclass(frozen=True)
class FirstHead:
    """The initial selection: a head, counted from 1, and a query row, at word level."""

    layer: int
    head: int
    query: int


@dataclass(frozen=True)
class _Row:
    """A query word: its row, the word predicted there, and that word's places; none if the whole text is classified."""

    number: int
    word: str
    places: tuple[int, ...]


def first_head(models: Models, asked: Request, one: ForwardPass, kind: Kind) -> FirstHead | None:
    """The head of a kind to show first; ``None`` if no word attends to another.

    Of all words and heads it is those with the largest product of two shares: how much of the probability of what is
    said there is lost without the head, and how much of its look the head gives to one other word. Articles and marks
    are no words that matter, and within a text a word's neighbours are no others. Of a large model the heads alone are
    tried that look most sharply.

    Args:
        asked: what the pass is of; ``one``: the pass.
        kind: of attention.
    """
    if kind == "pool" or asked.image is not None:
        return None
    record = one.record
    queries, keys = record.words(kind)
    seen = inputs_of(models, asked)
    rows = _rows(seen, one, kind, queries)
    if not rows:
        return None
    sharp_LHR = np.stack([_sharpness(weight_HQK, kind, rows, queries, keys) for weight_HQK in record.weights[kind]])
    found_LHR = sharp_LHR * _losses(seen, asked.changes, kind, rows, sharp_LHR)
    pointing = [bool(POINTERS.fullmatch(row.word)) for row in rows]
    for some_R, least in ((np.array(pointing), POINTS), (np.ones(len(rows), np.bool_), LEAST)):
        if (found_LHR * some_R).max() >= least:
            return _first_head_of(found_LHR * some_R, rows)
    if not sharp_LHR.any():
        return None
    return _first_head_of(sharp_LHR * (sharp_LHR.mean(axis=2) == sharp_LHR.mean(axis=2).max())[..., None], rows)


def _first_head_of(value_LHR: Floats, rows: Sequence[_Row]) -> FirstHead:
    layer, head, row = map(int, np.unravel_index(value_LHR.argmax(), value_LHR.shape))
    return FirstHead(layer + 1, head + 1, rows[row].number)


def _is_content_word(word: str) -> bool:
    return _WORD.match(word) is not None and ARTICLES.fullmatch(word) is None


def _rows(seen: ModelInputs, one: ForwardPass, kind: Kind, queries: Words) -> list[_Row]:
    """The query words, each with its prediction; without one, with the prediction for the whole text."""
    task, record = seen.task, one.record
    tokens = record.queries(kind)
    there = [
        (n, word, places)
        for n, (word, places) in enumerate(queries)
        if not any(tokens[place].special for place in places)
    ]
    plain = [one for one in there if _is_content_word(one[1])]
    if task.info.writes == "text" and kind == "encoder":
        return [_Row(n, word, tuple(range(len(seen.written)))) for n, word, _ in plain]
    if task.info.writes == "continuation" or (task.info.writes == "text" and kind == "decoder"):
        behind = int(task.info.writes == "continuation")  # the decoder predicts the word after the one it reads
        said = {places[0]: (word, tuple(places)) for word, places in words(record.written, record.target_text)}
        found = [(n, said.get(places[-1] + behind)) for n, _, places in there]
        return [_Row(n, *next_) for n, next_ in found if next_ is not None and _is_content_word(next_[0])]
    if fills_words(task):
        gaps = [
            (n, word, places) for n, (word, places) in enumerate(queries) if seen.written_ids[places[0]] == task.mask
        ]
        plain = gaps or plain
    if task.info.writes == "tags":
        named = {tag["end"] for tag in one.output["tags"] if tag["tag"] != OUTSIDE}
        plain = [found for found in plain if tokens[found[2][-1]].end in named] or plain
    whole = task.info.reads == "text" and task.info.writes in ("classes", "nothing")
    return [_Row(n, word, () if whole else tuple(places)) for n, word, places in plain]


def _sharpness(weight_HQK: Weights, kind: Kind, rows: Sequence[_Row], queries: Words, keys: Words) -> Floats:
    """``sharp_HR``: each row's largest weight on one other content word."""
    query_places, key_places = [places for _, places in queries], [places for _, places in keys]
    matters_K = np.array([_is_content_word(word) for word, _ in keys])
    numbers = [row.number for row in rows]
    far_RK = np.abs(np.array(numbers)[:, None] - np.arange(len(keys))) > 1 if is_self_attention(kind) else True
    worded = (by_word(weight_QK, query_places, key_places)[numbers] for weight_QK in weight_HQK)
    return np.stack([(weight_RK * matters_K * far_RK).max(axis=1) for weight_RK in worded]).astype(np.float64)


def _losses(seen: ModelInputs, without: AblationRequest, kind: Kind, rows: Sequence[_Row], sharp_LHR: Floats) -> Floats:
    """``fall_LHR``: the loss in probability of each row's prediction when a head is ablated.

    Of a large model the sharpest heads are tried alone, and nothing is lost without the others.
    """
    from regard.models.presets import count_parameters

    fall_LHR = np.zeros_like(sharp_LHR)
    task = seen.task
    size = count_parameters(task.model)
    most = min(PASSES, int(WORK / (size * (len(seen.source) + len(seen.written)))))
    if task.info.writes == "nothing" or is_number(task) or most < 2:
        return fall_LHR
    read = _probability_reader(seen, rows)
    sharpest = np.argsort(-sharp_LHR.max(axis=2), axis=None, kind="stable")[: most - 1]
    whole_R = np.nan_to_num(read_ablated(seen, without, read))
    for place in sorted(sharpest.tolist()):
        layer, head = map(int, np.unravel_index(place, sharp_LHR.shape[:2]))
        one = replace(without, off=(*without.off, (kind, layer + 1, head + 1)))
        fall_LHR[layer, head] = np.maximum(0, whole_R - np.nan_to_num(read_ablated(seen, one, read)))
    return fall_LHR


def _probability_reader(seen: ModelInputs, rows: Sequence[_Row]) -> Read:
    """A function from ``hidden_TD`` of a pass to the probability of each row's prediction."""
    if seen.task.info.writes in PIECES:
        return _piece_probabilities(seen, [row.places for row in rows])
    places = [row.places[0] if row.places else None for row in rows]
    scores = {place: explained_score(seen, place, None) for place in places}

    def read(hidden_TD: Tensor) -> Floats:
        found = {place: exp(float(score(hidden_TD))) for place, score in scores.items()}
        return np.array([found[place] for place in places])

    return read


def _piece_probabilities(seen: ModelInputs, places: Sequence[Sequence[int]]) -> Read:
    """For pieces written at some places; for gaps, the pieces most probable in the first pass."""
    task, ids = seen.task, list(seen.written_ids)
    behind = int(task.info.writes == "continuation")  # a language model predicts a piece one position earlier

    def read(hidden_TD: Tensor) -> Floats:
        import torch

        score_TV = piece_scores(task, hidden_TD).double()
        if fills_words(task):
            for place in (place for place, id in enumerate(ids) if id == task.mask):
                ids[place] = most_probable_piece(task, score_TV[place])
        said_T = torch.tensor([*ids[behind:], *[0] * behind], device=score_TV.device)
        log_T = (score_TV.gather(1, said_T[:, None])[:, 0] - score_TV.logsumexp(1)).cpu().numpy()
        return np.array([exp(sum(log_T[place - behind] for place in some)) for some in places])

    return read
