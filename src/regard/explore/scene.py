"""What a model reads and writes in one pass, ready to be run as often as somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, UsageError
from regard.explore.tokens import Token, mark, tokens_of

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.span_corruption import SpanCorruption
    from regard.tasks.translation import Translation


@dataclass(frozen=True)
class Scene:
    """A text, or a sentence and its translation, before a model.

    ``target`` is what the decoder reads: ``<s>``, then the target's tokens. ``written`` is what it predicts at each of
    these places: the target's tokens, then ``</s>``. A model of one text has the same tokens thrice.

    Args:
        task: the model, ready to use.
        source_text, target_text: what the tokens stand for.
        run: one pass over all; ``hidden_TD`` of the stack that is looked at last, without a head.
    """

    task: Any
    source_text: str
    target_text: str
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    written: tuple[Token, ...]
    run: Callable[[], Tensor]


def scene(task: Any, source_text: str, target_text: str | None = None) -> Scene:
    """A sentence and its translation, or whatever the task reads and writes, before the model.

    Args:
        task: a loaded translator, or a model of missing spans; or another model of texts, which has a source alone.
        source_text: one sentence; of a model of missing spans with gaps.
        target_text: its translation, or what is missing; the model's own (greedy) one if none is given.

    Raises:
        RegardError: the source is empty or longer than the model's sentences were.
        UsageError: a target for a model that writes none.
    """
    return SCENES.get(task.name, _one)(task, source_text, target_text)


def _one(task: Any, text: str, target_text: str | None) -> Scene:
    """One text."""
    if target_text is not None:
        raise UsageError("this model reads a text and writes none", "--target")
    _refuse_empty(text)
    known, read = task.reads(text)
    _refuse_long("text", len(read), task.recipe.data.max_tokens, "a part of it")
    from regard.models.reading import packed

    given = packed([[id for id, _, _ in read]], next(task.model.parameters()).device)
    run = PASSES[task.recipe.model.family]
    tokens = tuple(Token(task.assets.tokenizer.piece(id), start, end) for id, start, end in read)
    return Scene(task, known, known, tokens, tokens, tokens, lambda: run(task.model, given))


def _gapped(task: SpanCorruption, text: str, target_text: str | None) -> Scene:
    """A text with gaps and what is said of them."""
    from regard.tasks.gapped import spelled

    _refuse_empty(text)
    given, tokenizer = task.asked(text), task.assets.tokenizer
    _refuse_long("text", 1 + len(given.text.ids), task.recipe.data.max_tokens, "a part of it")
    if target_text is None:
        target, read = spelled(tokenizer, task.written(given.source), tokenizer.sentinels)
    else:
        asked = task.gaps.read(target_text)
        target, read = asked.text, list(asked.read)
    source, said = (
        tuple(Token(tokenizer.piece(id), *place) for id, *place in some) for some in (given.text.read, read)
    )
    end = mark(tokenizer, tokenizer.end, len(given.text.text))
    start, last = mark(tokenizer, tokenizer.start, 0), mark(tokenizer, tokenizer.end, len(target))
    run = _both(task.model, given.source.tolist(), [tokenizer.start, *(id for id, _, _ in read)])
    return Scene(task, given.text.text, target, (*source, end), (start, *said), (*said, last), run)


def _pair(task: Translation, source_text: str, target_text: str | None) -> Scene:
    """A sentence and its translation."""
    source_side, target_side = task.vocabularies.source, task.vocabularies.target
    longest = task.recipe.data.max_tokens
    _refuse_empty(source_text)
    source = source_side.encode(source_text)
    _refuse_long("text", 1 + len(source.ids), longest, "one sentence")
    if target_text is None:
        target = target_side.encode(task.translate(source_text, beam=1))  # as long as the model may write, it may read
    else:
        target = target_side.encode(target_text)
        _refuse_long("translation", 1 + len(target.ids), longest, "one sentence")
    read, written = tokens_of(target_side, target), len(target.text)
    return Scene(
        task,
        source.text,
        target.text,
        (*tokens_of(source_side, source), mark(source_side, source_side.end, len(source.text))),
        (mark(target_side, target_side.start, 0), *read),
        (*read, mark(target_side, target_side.end, written)),
        _both(task.model, [*source.ids, source_side.end], [target_side.start, *target.ids]),
    )


PASSES: dict[str, Callable[[Any, Any], Tensor]] = {
    "bert": lambda model, given: model.encoder(given),
    "gpt": lambda model, given: model(given),
}
"""What of a model of one text is run, by family: an encoder without its head."""
SCENES: dict[str, Callable[[Any, str, str | None], Scene]] = {"translation": _pair, "span-corruption": _gapped}
"""By task, where it is not one text."""


def _both(model: Any, source: Sequence[int], target: Sequence[int]) -> Callable[[], Tensor]:
    """A pass over what is read and what is written."""
    from regard.models.reading import pass_over

    return pass_over(model, [source], [target])


def _refuse_empty(text: str) -> None:
    if not text.strip():
        raise RegardError("there is nothing to look at: the text is empty")


def _refuse_long(name: str, tokens: int, limit: int, instead: str) -> None:
    if tokens > limit:
        raise RegardError(f"the {name} has {tokens} tokens, the model learned from {limit} at most; give {instead}")
