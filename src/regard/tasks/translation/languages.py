"""The languages that corpora and files of a translator are in, and are translated into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from regard.config import Text
from regard.data.corpora.corpus import Corpus, TextPair
from regard.data.corpora.pairs import direction_of
from regard.system.errors import Option, UsageError
from regard.text.language_tokens import ARGUMENTS, UNKNOWN_LANGUAGE, Direction, LanguageTokens
from regard.text.languages import language_of

if TYPE_CHECKING:
    from regard.tasks.text.preparation import Pretrained
    from regard.tasks.translation.translator import Translation

VALIDATION = Option("valid_source"), Option("valid_target")


def find_directions(
    learned: Sequence[Corpus[TextPair]],
    validation: Sequence[Corpus[TextPair]],
    text: Text,
    begun: Pretrained | None,
) -> tuple[tuple[Direction, ...], Direction]:
    """The direction of each corpus, those of validation last, and that of the recipe, which nobody need ask for.

    Corpora name theirs, or the recipe does; of one direction the recipe comes first. A model of one direction has none
    of each corpus, and one that goes on from a model of several keeps the recipe's.

    Args:
        learned: corpora that were read, to learn from.
        validation: those to validate on.
        text: of the recipe that is asked for.
        begun: the model to go on from.

    Raises:
        UsageError: a language is needed that nobody names, or that the model does not know.
    """
    known, count = begun.vocabularies.languages if begun else None, len(learned)
    corpora, asked = [*learned, *validation], (text.source_language, text.target_language)
    named = [direction_of(corpus) for corpus in corpora]
    each = [_fill(pair, asked) for pair in named]
    usual = _fill(asked, named[0] if len(set(named[:count])) == 1 else asked)
    if one := len(set(each[:count])) < 2 or (begun is not None and known is None):
        each[:count] = [usual] * count
        if known is None:
            return (), usual
    taught = tuple(each[:count])
    tokens = known or LanguageTokens({target: 0 for _, target in taught}, False, taught)
    tokens = replace(tokens, directions=tokens.directions and (*tokens.directions, *taught))
    for corpus, pair in zip(corpora, each, strict=True):
        if UNKNOWN_LANGUAGE in pair[0 if tokens.has_sources else 1 :]:
            message = "the model is one of several languages, but of this it is not known which they are"
            ways = f"name keys or languages by {Option('columns', 'en,de')}, or say {' and '.join(map(str, ARGUMENTS))}"
            raise UsageError(f"{message}: let its name end in them (.en, .de), {ways}", corpus.name)
    arguments = [ARGUMENTS] * count + [VALIDATION] * len(validation)
    found = tuple(tokens.find(*pair, both) for pair, both in zip(each, arguments, strict=True))
    if known and begun and known.directions:
        return found, (begun.recipe.text.source_language, begun.recipe.text.target_language)
    sources = {source for source, _ in found[:count]}
    return ((), usual) if one else (found, (sources.pop() if len(sources) == 1 else UNKNOWN_LANGUAGE, found[0][1]))


def between_files(
    task: Translation, files: tuple[Path, Path], asked: tuple[str | None, str | None] = (None, None)
) -> Translation:
    """A translator of the languages that are asked for; of one of several, else of those that files' names end in.

    Raises:
        UsageError: it does not know them, or nobody says which they are.
    """
    wanted, known = list(asked), task.assets.languages
    if known is None:
        return task.between(*wanted)
    first = 0 if known.has_sources else 1
    wanted[first:] = [one or language_of(path) for one, path in zip(asked, files, strict=True)][first:]
    if UNKNOWN_LANGUAGE in wanted:
        options = f"{Option('to', 'CODE')}" if first else f"{Option('from_', 'CODE')} {Option('to', 'CODE')}"
        message = "the model translates several languages, and the files' names do not end in theirs (.en, .de)"
        raise UsageError(f"{message}; rename them, or evaluate with {options}")
    return task.between(*wanted)


def _fill(first: Direction, second: Direction) -> Direction:
    """The languages of the first, those of the second where it does not name them."""
    source, target = (code if code != UNKNOWN_LANGUAGE else other for code, other in zip(first, second, strict=True))
    return source, target
