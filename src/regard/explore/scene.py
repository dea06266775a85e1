"""What a model reads and writes in one pass, ready to be run as often as somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, UsageError
from regard.explore.tokens import Token, mark, piece

if TYPE_CHECKING:
    from torch import Tensor

    from regard.models.inputs import Tokens
    from regard.models.rnn_reader import RnnReader
    from regard.tasks.image_classification import Image, ImageClassification
    from regard.tasks.span_corruption import SpanCorruption
    from regard.tasks.texts import Read
    from regard.tasks.translation import Translation
    from regard.text.vocabulary import AnyTokenizer

    Side = tuple[AnyTokenizer, str, Sequence[Read]]
    """A text with its tokenizer and its pieces, the symbols around it left out."""

Target = str | Sequence[int] | None
"""What is written: a text, or the numbers of its pieces; ``None``: what the model writes itself."""
BEGINNING = 16
"""Characters for each token that a model reads at most; what is longer, is looked at by so much of it first."""
CLASS = "class"
"""The token before the patches of an image."""


@dataclass(frozen=True)
class Scene:
    """A text, or a sentence and its translation, before a model; or an image, whose tokens are its patches.

    ``target`` is what the decoder reads: ``<s>``, then the target's tokens. ``written`` is what it predicts at each of
    these places: the target's tokens, then ``</s>``. A model of one text has the same tokens thrice.

    Args:
        task: the model, ready to use.
        source_text, target_text: what the tokens stand for.
        run: one pass over all; ``hidden_TD`` of the stack that is looked at last, without a head.
        read_ids, written_ids: the numbers of the pieces of ``source`` and ``written``; an image has none.
    """

    task: Any
    source_text: str
    target_text: str
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    written: tuple[Token, ...]
    run: Callable[[], Tensor]
    read_ids: tuple[int, ...] = ()
    written_ids: tuple[int, ...] = ()


def scene(task: Any, source_text: str, target: Target = None) -> Scene:
    """A sentence and its translation, or whatever the task reads and writes, before the model.

    Args:
        task: a loaded translator, or a model of missing spans; or another model of texts, which has a source alone.
        source_text: one sentence; of a model of missing spans with gaps.
        target: its translation, or what is missing; the model's own (greedy) one if none is given. Of a language model
            the pieces that it goes on with, if any.

    Raises:
        RegardError: the source is empty or longer than the model's sentences were.
        UsageError: a target for a model that writes none, or pieces that the model never writes.
    """
    if not source_text.strip():
        raise RegardError("there is nothing to look at: the text is empty")
    _refuse_endless(task, source_text)
    return SCENES.get(task.name, _one)(task, source_text, target)


def image_scene(task: ImageClassification, image: Image) -> Scene:
    """An image before a model: the class token, then its patches, named by row and column from 1,1 on.

    Raises:
        RegardError: the image is not of the size the model reads.
    """
    (batch,) = task.batches(task.images([image]))
    rows, columns = task.cut.shape.height // task.cut.patch, task.cut.shape.width // task.cut.patch
    names = [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
    patches = (Token(name, place, place + 1) for place, name in enumerate(names))
    tokens = (Token(CLASS, 0, 0), *patches)
    return Scene(task, "", "", tokens, tokens, tokens, lambda: task.model.encoder(batch))


def _one(task: Any, text: str, target: Target) -> Scene:
    """One text."""
    if target is not None and (isinstance(target, str) or task.name != "language-model"):
        raise UsageError("this model reads a text and writes none", "--target")
    known, read = task.reads(text)
    tokenizer = task.assets.tokenizer
    if target is not None:
        more, said = _spoken(task, tokenizer, target)
        read = [*read, *((id, start + len(known), end + len(known)) for id, start, end in said)]
        known += more
    _refuse_long("text", len(read), task.recipe.data.max_tokens, "a part of it")
    from regard.models.reading import packed

    ids = tuple(id for id, _, _ in read)
    given = packed([ids], next(task.model.parameters()).device)
    run = PASSES[task.recipe.model.family]
    tokens = _tokens(tokenizer, read)
    return Scene(task, known, known, tokens, tokens, tokens, lambda: run(task.model, given), ids, ids)


def _gapped(task: SpanCorruption, text: str, target: Target) -> Scene:
    """A text with gaps and what is said of them."""
    given, tokenizer, longest = task.asked(text), task.assets.tokenizer, task.recipe.data.max_tokens
    _refuse_long("text", 1 + len(given.text.ids), longest, "a part of it")
    if isinstance(target, str):
        forced = task.gaps.read(target)
        _refuse_long("text that is missing", 1 + len(forced.read), longest, "a part of it")
        written, read = forced.text, list(forced.read)
    else:
        ids = task.written(given.source) if target is None else target
        written, read = _spoken(task, tokenizer, ids, tokenizer.sentinels)
    return _both(task, (tokenizer, given.text.text, given.text.read), (tokenizer, written, read))


def _pair(task: Translation, source_text: str, target: Target) -> Scene:
    """A sentence and its translation."""
    from regard.tasks.texts import read_as

    source_side, target_side = task.vocabularies.source, task.vocabularies.target
    longest = task.recipe.data.max_tokens
    known, read = read_as(source_side, source_text, ())
    _refuse_long("text", 1 + len(read), longest, "one sentence")
    if target is None:
        said = read_as(target_side, task.translate(source_text, beam=1), ())  # as long as it may write, it may read
    elif isinstance(target, str):
        said = read_as(target_side, target, ())
        _refuse_long("translation", 1 + len(said[1]), longest, "one sentence")
    else:
        said = _spoken(task, target_side, target)
    return _both(task, (source_side, known, read), (target_side, *said))


def _weighed(model: RnnReader, given: Tokens) -> Tensor:
    """The encoder; its head reads too, so that what it attends to is heard."""
    hidden_TD: Tensor = model.encoder(given)
    model.head(hidden_TD, given.sequences)
    return hidden_TD


PASSES: dict[str, Callable[[Any, Any], Tensor]] = {
    "bert": lambda model, given: model.encoder(given),
    "rnn-encoder": _weighed,
    "gpt": lambda model, given: model(given),
}
"""What of a model of one text is run, by family; ``hidden_TD`` of the encoder, before a head."""
SCENES: dict[str, Callable[[Any, str, Target], Scene]] = {"translation": _pair, "span-corruption": _gapped}
"""By task, where it is not one text."""


def _both(task: Any, read: Side, said: Side) -> Scene:
    """A scene of what is read and what is written, each a tokenizer, a text and its pieces, without symbols around."""
    from regard.models.reading import pass_over

    (source_side, source_text, source), (target_side, target_text, target) = read, said
    read_ids = (*(id for id, _, _ in source), source_side.end)
    ids = [id for id, _, _ in target]
    return Scene(
        task,
        source_text,
        target_text,
        (*_tokens(source_side, source), mark(source_side, source_side.end, len(source_text))),
        (mark(target_side, target_side.start, 0), *_tokens(target_side, target)),
        (*_tokens(target_side, target), mark(target_side, target_side.end, len(target_text))),
        pass_over(task.model, [read_ids], [[target_side.start, *ids]]),
        read_ids,
        (*ids, target_side.end),
    )


def _spoken(
    task: Any, tokenizer: AnyTokenizer, ids: Sequence[int], symbols: Collection[int] = ()
) -> tuple[str, list[Read]]:
    """What pieces say as a text, and each of them with its characters; ``</s>`` at the end may be left out or not.

    Raises:
        RegardError: they are more than the model writes.
        UsageError: the model never writes one of them.
    """
    from regard.tasks.gapped import spelled
    from regard.tasks.texts import read_as

    ids = list(ids[:-1] if ids and ids[-1] == tokenizer.end else ids)
    never = {*task.symbols.without, tokenizer.end}
    for id in ids:
        if id in never or not 0 <= id < tokenizer.size:
            raise UsageError(f"piece {id} is none that this model writes", "branch")
    data, decoding = task.recipe.data, task.recipe.decoding
    _refuse_long("text that is written", len(ids), data.max_tokens + decoding.max_extra, "fewer pieces")
    text, read = read_as(tokenizer, tokenizer.decode(ids), ())
    return (text, read) if [id for id, _, _ in read] == ids else spelled(tokenizer, ids, symbols)


def _tokens(tokenizer: AnyTokenizer, read: Sequence[Read]) -> tuple[Token, ...]:
    return tuple(Token(piece(tokenizer, id), start, end) for id, start, end in read)


def _refuse_endless(task: Any, text: str) -> None:
    """Refuse a text by its beginning where that is far too long already; only then is the rest not read at all."""
    limit = task.recipe.data.max_tokens
    begun = text[: BEGINNING * limit]
    if len(begun) < len(text):
        tokenizer = task.vocabularies.source if task.name == "translation" else task.assets.tokenizer
        tokens = len(tokenizer.encode(begun).ids)
        if tokens > 2 * limit:
            _refuse_long("beginning of the text", tokens, limit, "a part of it")


def _refuse_long(name: str, tokens: int, limit: int, instead: str) -> None:
    if tokens > limit:
        raise RegardError(f"the {name} has {tokens} tokens, the model learned from {limit} at most; give {instead}")
