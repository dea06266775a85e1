"""Attribution: how much each token contributes to an output, or to one output instead of another.

The output is a text, a word of it, a label, or one of two instead of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward.outputs import piece_scores
from regard.inspection.forward.passes import inputs_of
from regard.inspection.forward.record import ModelInputs, Token, piece, words
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.questions.attribution import (
    FEWEST,
    Method,
    Score,
    attribute,
    difference,
    explained_score,
    is_number,
    label_index,
    most_probable_piece,
    pieces_score,
    read_ablated,
)
from regard.inspection.requests import Request
from regard.library.attention import TokenLabels
from regard.system.errors import RegardError, UsageError
from regard.tasks.kinds import fills_words, reads_text

if TYPE_CHECKING:
    from torch import Tensor

MOST = 100_000
"""Most passes of integrated gradients."""
FOR, AGAINST = "31,79,214", "176,68,24"
"""Colours, as red, green and blue."""


@dataclass(frozen=True, eq=False)
class TokenShares:
    """The shares of the tokens of one text.

    Args:
        labels: the tokens.
        shares: of each; negative where the token speaks against the output.
    """

    labels: TokenLabels
    shares: NDArray[np.float64]

    def by_word(self) -> tuple[tuple[str, float], ...]:
        """Each word with the sum over its tokens."""
        return tuple((word, float(self.shares[list(places)].sum())) for word, places in self.labels.words)


@dataclass(frozen=True, eq=False, repr=False)
class Attribution:
    """What an output rests on.

    Args:
        method: ``gradient_x_input`` or ``integrated_gradients``.
        output: what is explained: a text, a word, a piece, a label.
        against: what it is compared with; ``None``: nothing.
        score: the log-probability of the output, or the number of a regression; with ``against`` the difference of
            the two log-probabilities.
        baseline: of integrated gradients, the score where all embeddings are zero.
        source: the tokens read; ``target``: those written before, of a model that reads and writes.
    """

    method: Method
    output: str
    against: str | None
    score: float
    baseline: float | None
    source: TokenShares
    target: TokenShares | None

    @property
    def delta(self) -> float | None:
        """The error of integrated gradients: what all shares lack of ``score - baseline``."""
        if self.baseline is None:
            return None
        total = sum(float(side.shares.sum()) for side in (self.source, self.target) if side is not None)
        return self.score - self.baseline - total

    def __repr__(self) -> str:
        what = repr(self.output) if self.against is None else f"{self.output!r} instead of {self.against!r}"
        best = sorted(self.source.by_word(), key=lambda one: -abs(one[1]))[:3]
        most = ", ".join(f"{word} {share:+.3f}" for word, share in best)
        return f"<Attribution of {what} by {self.method}: score {self.score:.4f}; most: {most}>"

    def _repr_html_(self) -> str:
        """The tokens, coloured by their shares: blue for the output, brown against it."""
        sides = [side for side in (self.source, self.target) if side is not None]
        largest = max(float(np.abs(side.shares).max(initial=0)) for side in sides) or 1.0
        what = escape(self.output) if self.against is None else f"{escape(self.output)} − {escape(self.against)}"
        rows = "".join(f"<p style='line-height:2'>{_coloured(side, largest)}</p>" for side in sides)
        return f"<div><b>{what}</b>: {self.score:.4f} ({self.method.replace('_', ' ')}){rows}</div>"


def attribution(given: OutputRequest, method: Method, passes: int) -> Attribution:
    """The attribution of an output.

    Args:
        given: the output.
        method: how.
        passes: of integrated gradients, at most.

    Raises:
        UsageError: the model has no such output, there is no such method, or the passes are too few or too many.
        RegardError: the text is empty or too long, or the model computes NaN or infinite values.
    """
    if method not in get_args(Method):
        raise UsageError(f"{method!r} is no method; there are {' and '.join(get_args(Method))}", "method")
    if isinstance(passes, bool) or not isinstance(passes, int) or not FEWEST <= passes <= MOST:
        raise UsageError(f"{passes!r} is no number from {FEWEST} to {MOST:,}", "passes")
    outputs = {"text": _of_text, "continuation": _of_continuation, "words": _of_gap}
    writes = given.models.load_for(given.asked).task.info.writes
    explained = outputs.get(writes, _of_label)(given)
    seen = explained.seen
    score, baseline, shares = attribute(seen, given.asked.changes, explained.score, method, passes)
    source = _token_shares(seen.source, seen.source_text, shares["source"])
    target = _token_shares(seen.target, seen.target_text, shares["target"]) if "target" in shares else None
    return Attribution(method, explained.output, explained.against, score, baseline, source, target)


def _token_shares(tokens: Sequence[Token], text: str, shares: NDArray[np.floating]) -> TokenShares:
    return TokenShares(TokenLabels.of(tokens, words(tokens, text), text), np.asarray(shares, np.float64))


def _coloured(side: TokenShares, largest: float) -> str:
    found = []
    for token, share in zip(side.labels.tokens, side.shares.tolist(), strict=True):
        colour = f"rgba({FOR if share > 0 else AGAINST},{0.6 * abs(share) / largest:.2f})"
        style = f"padding:2px 3px;border-radius:3px;background:{colour}"
        found.append(f"<span title='{share:+.4f}' style='{style}'>{escape(token)}</span>")
    return " ".join(found)


@dataclass(frozen=True)
class OutputRequest:
    """What is to be explained.

    Args:
        models, asked: the model and its input.
        target: the output; ``against``: another one, whose score is taken off.
        word: of what is written or tagged: a word, or the index of a token.
    """

    models: Models
    asked: Request
    target: str | None
    against: str | None
    word: str | int | None

    def inputs(self, changed: Request | None = None) -> ModelInputs:
        """The input, or a changed one."""
        return inputs_of(self.models, changed or self.asked)


@dataclass(frozen=True)
class OutputScore:
    """An output in one pass.

    Args:
        seen: the pass.
        score: of the output, or its difference to that of ``against``.
        output, against: what they are, for people.
    """

    seen: ModelInputs
    score: Score
    output: str
    against: str | None = None


def _of_text(given: OutputRequest) -> OutputScore:
    """A whole text that is written, a word of it, or the first piece that is another in the other text."""
    seen, against = given.inputs(), given.against
    if against is None:
        if given.word is None:
            return OutputScore(seen, pieces_score(seen, range(len(seen.written))), seen.target_text)
        return _word(seen, given.word)
    if given.word is not None:
        against = _replace_words(seen, _places(seen, given.word), against)
    return _contrast(seen, given.inputs(replace(given.asked, target=against, branch=None)))


def _of_continuation(given: OutputRequest) -> OutputScore:
    """What a language model goes on with, the most probable piece by default; or a word of the text."""
    if given.word is not None:
        _refuse("a word of the text is explained by itself", target=given.target, against=given.against)
        return _word(given.inputs(), given.word)
    asked = [replace(given.asked, text=given.asked.text + (end or "")) for end in (given.target, given.against)]
    longest = max(asked, key=lambda one: len(one.text))
    if fit_request(given.models, longest).source is not None:
        raise RegardError("with its continuation this is longer than the model reads", "text")
    seen = given.inputs(asked[0])
    other = None if given.against is None else given.inputs(asked[1])
    if given.target:
        if other is not None:
            return _contrast(seen, other)
        begun = _first_difference(given.inputs().written_ids, seen.written_ids)
        return OutputScore(seen, pieces_score(seen, range(begun, len(seen.written))), given.target)
    place = len(seen.written)
    id = _most_probable(given, seen, place)
    if other is None:
        return _at(seen, place, id)
    if other.written_ids[:place] != seen.written_ids or len(other.written_ids) == place:
        raise UsageError("does not go on with the text as it is; begin it with a space", "against")
    return _at(seen, place, id, other.written_ids[place])


def _of_gap(given: OutputRequest) -> OutputScore:
    """What fills a gap, the first by default; or a word that is there."""
    seen = given.inputs()
    assert fills_words(seen.task)
    gaps = [place for place, id in enumerate(seen.written_ids) if id == seen.task.mask]
    if given.word is None and not gaps:
        raise UsageError("the text has no gap; write [MASK], or name a word", "word")
    places = gaps[:1] if given.word is None else _places(seen, given.word)
    if len(places) > 1 or (places[0] not in gaps and given.target is None and given.against is None):
        _refuse("this word has several pieces; name one by its index", target=given.target, against=given.against)
        return _pieces(seen, places)
    (place,) = places
    id = seen.written_ids[place]
    if given.target is not None:
        id = _filling(given, seen, place, "target")
    elif place in gaps:
        id = _most_probable(given, seen, place)
    return _at(seen, place, id, None if given.against is None else _filling(given, seen, place, "against"))


def _of_label(given: OutputRequest) -> OutputScore:
    """A label of a text, an image or a word, the most probable by default; of a regression the number."""
    seen = given.inputs()
    task, place = seen.task, None
    labels: tuple[str, ...] = getattr(task.assets, "labels", ())
    if task.info.writes == "tags":
        if given.word is None:
            raise UsageError("a tag is of a word; name it", "word")
        place = _places(seen, given.word)[0]
    else:
        _refuse("this model predicts nothing for a single word", word=given.word)
    whole = explained_score(seen, place, None)
    if is_number(task):
        _refuse("this model predicts a number, and no labels", target=given.target, against=given.against)
        return OutputScore(seen, whole, labels[0])
    for name, label in (("target", given.target), ("against", given.against)):
        label_index(labels, label, name)
    scores = {label: explained_score(seen, place, label) for label in labels}

    def most_probable(hidden_TD: Tensor) -> str:
        best = float(whole(hidden_TD))
        return min(labels, key=lambda label: abs(float(scores[label](hidden_TD)) - best))

    target = given.target or read_ablated(seen, given.asked.changes, most_probable)
    if given.against is None:
        return OutputScore(seen, scores[target], target)
    return OutputScore(seen, difference(scores[target], scores[given.against]), target, given.against)


def _word(seen: ModelInputs, word: str | int) -> OutputScore:
    places = _places(seen, word)
    if seen.task.info.writes == "continuation" and 0 in places:
        raise UsageError("the first token was given: nothing came before it", "word")
    return _pieces(seen, places)


def _pieces(seen: ModelInputs, places: Sequence[int]) -> OutputScore:
    begin, end = _span(seen, places)
    text = seen.target_text[begin:end] or seen.written[places[0]].text
    return OutputScore(seen, pieces_score(seen, places), text)


def _contrast(seen: ModelInputs, other: ModelInputs) -> OutputScore:
    """Where two written texts first differ: one piece instead of the other, after the same beginning [Yin22 §2]."""
    place = _first_difference(seen.written_ids, other.written_ids)
    if place == min(len(seen.written_ids), len(other.written_ids)):
        raise UsageError("is written already, or says no more: the two do not differ", "against")
    return _at(seen, place, seen.written_ids[place], other.written_ids[place])


def _at(seen: ModelInputs, place: int, id: int, other: int | None = None) -> OutputScore:
    """A piece at a place, or one instead of another."""
    assert reads_text(seen.task)
    score, name = pieces_score(seen, [place], [id]), partial(piece, seen.task.target_tokenizer)
    if other is None:
        return OutputScore(seen, score, name(id))
    if id == other:
        raise UsageError("is the output itself: the two do not differ", "against")
    return OutputScore(seen, difference(score, pieces_score(seen, [place], [other])), name(id), name(other))


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    """The first index where two sequences differ; the length of the shorter, if it begins the other."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def _most_probable(given: OutputRequest, seen: ModelInputs, place: int) -> int:
    """The most probable piece at a place."""
    task = seen.task
    assert reads_text(task)
    row = place - int(task.info.writes == "continuation")

    def best(hidden_TD: Tensor) -> int:
        return most_probable_piece(task, piece_scores(task, hidden_TD)[row])

    return read_ablated(seen, given.asked.changes, best)


def _filling(given: OutputRequest, seen: ModelInputs, place: int, name: str) -> int:
    """The piece of a word in the place of a token.

    Raises:
        UsageError: it is not one piece of the vocabulary.
    """
    word: str = getattr(given, name)
    ids = given.inputs(replace(given.asked, text=_replace_words(seen, [place], word))).written_ids
    rest = seen.written_ids[:place], seen.written_ids[place + 1 :]
    if (ids[:place], ids[place + 1 :]) != rest or len(ids) != len(seen.written_ids):
        raise UsageError(f"{word[:40]!r} is not one piece of the vocabulary", name)
    return ids[place]


def _places(seen: ModelInputs, word: str | int) -> list[int]:
    """The places of a word's tokens: of its last occurrence, in capitals or not."""
    if isinstance(word, int):
        if not 0 <= word < len(seen.written):
            raise UsageError(f"there is no token {word}; they count from 0 to {len(seen.written) - 1}", "word")
        return [word]
    there = words(seen.written, seen.target_text)
    found = [places for one, places in there if one.casefold() == word.strip().casefold()]
    if not found:
        raise UsageError(f"{word[:40]!r} is not a word here; there are: {' '.join(one for one, _ in there)}", "word")
    return found[-1]


def _span(seen: ModelInputs, places: Sequence[int]) -> tuple[int, int]:
    """The characters of some tokens, without the space before them; a gap, which covers none, reaches to the next."""
    begin, end = seen.written[places[0]].start, seen.written[places[-1]].end
    if begin == end and places[-1] + 1 < len(seen.written):
        end = seen.written[places[-1] + 1].start
    text = seen.target_text[begin:end]
    return begin + len(text) - len(text.lstrip()), begin + len(text.rstrip())


def _replace_words(seen: ModelInputs, places: Sequence[int], word: str) -> str:
    """The written text with another word in the place of some tokens."""
    begin, end = _span(seen, places)
    return seen.target_text[:begin] + word + seen.target_text[end:]


def _refuse(why: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(why, name)
