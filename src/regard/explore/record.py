"""One pass of a model, recorded: its tokens and every attention weight of every head."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.tasks.span_corruption import SpanCorruption
    from regard.tasks.translation import Translation
    from regard.text.tokenizer import Encoding, Tokenizer
    from regard.text.vocabulary import AnyTokenizer

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Encoder-decoder attention",
}
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Token:
    """A piece as people read it, and the characters of the text it stands for (none for ``<s>`` and ``</s>``)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Record:
    """What was read, what was written, and where every head looked.

    ``target`` is what the decoder reads: ``<s>``, then the target's tokens. ``written`` is what it predicts at each of
    these places: the target's tokens, then ``</s>``; rows of cross-attention are best labelled with that.
    ``weights[kind][layer]`` is ``weight_HQK``; a row over the keys sums to one.
    """

    source_text: str
    target_text: str
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    written: tuple[Token, ...]
    weights: dict[str, list[NDArray[np.float32]]]

    def queries(self, kind: Kind) -> tuple[Token, ...]:
        """The tokens whose attention ``kind`` is: rows."""
        return {"encoder": self.source, "decoder": self.target, "cross": self.written}[kind]

    def keys(self, kind: Kind) -> tuple[Token, ...]:
        """The tokens attended to: columns."""
        return self.target if kind == "decoder" else self.source

    def layer(self, kind: Kind, layer: int) -> NDArray[np.float32]:
        """``weight_HQK`` of a layer, counted from 1 as in the paper's figures.

        Raises:
            UsageError: there is no such layer.
        """
        if kind not in self.weights:
            there = " and ".join(TITLES[one].lower() for one in KINDS if one in self.weights)
            raise UsageError(f"this model has {there} alone", "--kind")
        count = len(self.weights[kind])
        if not 1 <= layer <= count:
            raise UsageError(f"there is no layer {layer}; this model has layers 1 to {count}", "--layer")
        return self.weights[kind][layer - 1]

    def head(self, kind: Kind, layer: int, head: int) -> NDArray[np.float32]:
        """``weight_QK`` of one head, counted from 1.

        Raises:
            UsageError: there is no such layer or head.
        """
        weight_HQK = self.layer(kind, layer)
        if not 1 <= head <= len(weight_HQK):
            raise UsageError(f"there is no head {head}; this model has heads 1 to {len(weight_HQK)}", "--head")
        return weight_HQK[head - 1]

    def to_dict(self, kinds: Sequence[Kind] = KINDS) -> dict[str, Any]:
        """Plain values, for JSON: texts, tokens with offsets, weights as nested lists rounded to six digits."""
        kinds = [kind for kind in kinds if kind in self.weights]
        sides = {"source": self.source, "target": self.target, "written": self.written}
        return {
            "format": 1,
            "source_text": self.source_text,
            "target_text": self.target_text,
            **{
                name: [{"text": t.text, "start": t.start, "end": t.end} for t in tokens]
                for name, tokens in sides.items()
            },
            "weights": {kind: [np.round(w.astype(float), 6).tolist() for w in self.weights[kind]] for kind in kinds},
        }


def record(task: Any, source_text: str, target_text: str | None = None) -> Record:
    """Run the model once over a sentence and its translation, and keep every attention weight [Vaswani17 §3.2].

    The weights are those of the forward pass itself, heard by the probe, not computed a second time.

    Args:
        task: a loaded translator, or a model of missing spans; or another model of texts, which has a source alone.
        source_text: one sentence; of a model of missing spans with gaps.
        target_text: its translation, or what is missing; the model's own (greedy) one if none is given.

    Raises:
        RegardError: the source is empty or longer than the model's sentences were, or the model has no attention.
        UsageError: a target for a model that writes none.
    """
    found = RECORDS.get(task.name, _one)(task, source_text, target_text)
    if not any(found.weights.values()):
        raise RegardError("this model has no attention to look at")
    return found


def _one(task: Any, text: str, target_text: str | None) -> Record:
    """A pass over one text."""
    if target_text is not None:
        raise UsageError("this model reads a text and writes none", "--target")
    if not text.strip():
        raise RegardError("there is nothing to look at: the text is empty")
    known, read = task.reads(text)
    if len(read) > task.recipe.data.max_tokens:
        longest = task.recipe.data.max_tokens
        raise RegardError(
            f"the text has {len(read)} tokens, the model learned from {longest} at most; give a part of it"
        )
    from regard.models.reading import heard, packed

    ids = [id for id, _, _ in read]
    given = packed([ids], next(task.model.parameters()).device)
    family = task.recipe.model.family
    weights = heard(task.model, family, lambda: PASSES[family](task.model, given), [len(ids)])
    tokens = tuple(Token(task.assets.tokenizer.piece(id), start, end) for id, start, end in read)
    plain = {kind: [one[0].float().cpu().numpy() for one in layers] for kind, layers in weights.items()}
    return Record(known, known, tokens, tokens, tokens, plain)


def _gapped(task: SpanCorruption, text: str, target_text: str | None) -> Record:
    """A pass over a text with gaps and what is said of them."""
    from regard.tasks.gapped import spelled

    if not text.strip():
        raise RegardError("there is nothing to look at: the text is empty")
    given, tokenizer = task.asked(text), task.assets.tokenizer
    if len(given.source) != len(given.text.ids) + 1:
        longest = task.recipe.data.max_tokens
        message = f"the text has {len(given.text.ids) + 1} tokens, the model learned from {longest} at most"
        raise RegardError(f"{message}; give a part of it")
    if target_text is None:
        target, read = spelled(tokenizer, task.written(given.source), tokenizer.sentinels)
    else:
        asked = task.gaps.read(target_text)
        target, read = asked.text, list(asked.read)
    weights = _heard(task, given.source.tolist(), [tokenizer.start, *(id for id, _, _ in read)])
    source, said = (
        tuple(Token(tokenizer.piece(id), *place) for id, *place in some) for some in (given.text.read, read)
    )
    end = _mark(tokenizer, tokenizer.end, len(given.text.text))
    start, last = _mark(tokenizer, tokenizer.start, 0), _mark(tokenizer, tokenizer.end, len(target))
    return Record(given.text.text, target, (*source, end), (start, *said), (*said, last), weights)


def _pair(task: Translation, source_text: str, target_text: str | None) -> Record:
    """A pass over a sentence and its translation."""
    source_side, target_side = task.vocabularies.source, task.vocabularies.target
    source = source_side.encode(source_text)
    _refuse("text", source, task.recipe.data.max_tokens)
    if target_text is None:
        target = target_side.encode(task.translate(source_text, beam=1))  # as long as the model may write, it may read
    else:
        target = target_side.encode(target_text)
        _refuse("translation", target, task.recipe.data.max_tokens)
    weights = _heard(task, [*source.ids, source_side.end], [target_side.start, *target.ids])
    read, written = _tokens(target_side, target), len(target.text)
    return Record(
        source.text,
        target.text,
        (*_tokens(source_side, source), _mark(source_side, source_side.end, len(source.text))),
        (_mark(target_side, target_side.start, 0), *read),
        (*read, _mark(target_side, target_side.end, written)),
        weights,
    )


PASSES: dict[str, Callable[[Any, Any], Any]] = {
    "bert": lambda model, given: model.encoder(given),
    "gpt": lambda model, given: model(given),
}
"""What of a model of one text is run, by family: an encoder without its head."""
RECORDS: dict[str, Callable[[Any, str, str | None], Record]] = {"translation": _pair, "span-corruption": _gapped}
"""By task, where it is not one text."""


def _refuse(name: str, encoding: Encoding, limit: int) -> None:
    if name == "text" and not encoding.text.strip():
        raise RegardError("there is nothing to look at: the text is empty")
    if len(encoding.ids) >= limit:
        raise RegardError(
            f"the {name} has {len(encoding.ids)} tokens, the model learned from {limit} at most; give one sentence"
        )


def _heard(task: Any, source: list[int], target: list[int]) -> dict[str, list[NDArray[np.float32]]]:
    """Every attention weight of one forward pass in evaluation mode, by kind and layer."""
    from regard.models.reading import weights_of

    weights = weights_of(task.model, task.recipe.model.family, [source], [target])
    return {kind: [pairs[0].float().cpu().numpy() for pairs in layers] for kind, layers in weights.items()}


def _tokens(tokenizer: Tokenizer, encoding: Encoding) -> list[Token]:
    return [
        Token(tokenizer.piece(id), start, end) for id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
    ]


def _mark(tokenizer: AnyTokenizer, id: int, place: int) -> Token:
    return Token(tokenizer.piece(id), place, place)


def words(tokens: Sequence[Token], text: str) -> list[tuple[str, list[int]]]:
    """The words of a sentence, each with the places of its tokens; ``<s>`` and ``</s>`` are words of their own.

    A token that is nothing but a space belongs to the word behind it.
    """
    spans = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    found: list[tuple[tuple[int, int] | None, str, list[int]]] = []
    for place, token in enumerate(tokens):
        first = next((i for i in range(token.start, len(text)) if not text[i].isspace()), token.start)
        span = next(((a, b) for a, b in spans if a <= first < b), None) if token.end > token.start else None
        if span is not None and found and found[-1][0] == span:
            found[-1][2].append(place)
        else:
            found.append((span, text[slice(*span)] if span else token.text, [place]))
    return [(word, places) for _, word, places in found]


def by_word(weight_QK: NDArray[Any], queries: Sequence[list[int]], keys: Sequence[list[int]]) -> NDArray[Any]:
    """Weights between words: summed over a key word's tokens, averaged over a query word's, so that rows sum to one."""
    summed = np.stack([weight_QK[:, places].sum(axis=1) for places in keys], axis=1)
    return np.stack([summed[places].mean(axis=0) for places in queries])
