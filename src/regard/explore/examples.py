"""Texts that suit a model, to begin with: what its run showed of itself, or the sentences of the demonstration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from regard.config import Recipe
from regard.explore.course import LOG
from regard.explore.gapping import gapped, validated
from regard.explore.regular import opened
from regard.text.normalisation import well_formed

MOST, SHORT = 6, 160
"""Examples that are given, and the characters of each at most; fewer where a model reads fewer at once."""
PRONOUNS, OTHERS, DRAWN = 2, 2, 60
"""Of the demonstration's test sentences: with a pronoun, without one, and how many are drawn to find them."""
FIRST = 1 << 16
"""Bytes of a validation set in which its first sentences are looked for."""
TAIL = 1 << 22
"""Bytes at the end of a log in which its newest samples are looked for."""
SIZES = (3, 4, 128, 2400)
"""Of the demonstration: layers, heads, d_model and pieces."""
GAP = "[MASK]"
LOST = "\ufffd"
"""What stands for bytes that are no text: part of a letter was cut off."""
GAPPED = ("masked-lm", "span-corruption")
PLAIN = "The old cat [MASK] on the green mat."
"""For a model of gaps of which nothing else is known."""
_NAMED = re.compile(r"<extra_(?:id_)?\d+>")
_SAMPLE = b'{"kind": "sample"'


def examples(folder: Path, recipe: Recipe) -> list[str]:
    """Up to six short texts for a model; none for one of images, or where nothing is known."""
    if recipe.task == "image-classification":
        return []
    if demonstrated(recipe):
        return _of_grammar(recipe.seed)
    with_gaps = recipe.task in GAPPED
    if with_gaps and (made := _distinct(_of_validation(folder, recipe))):
        return made
    texts = (_NAMED.sub(GAP, text) for text in (*_samples(folder / LOG), *_validated(folder)))
    lines = (line for text in texts for line in _whole(text, room(recipe)))
    found = _distinct(line for line in lines if GAP in line or not with_gaps)
    return found or ([PLAIN] if with_gaps else [])


def _distinct(lines: Iterable[str]) -> list[str]:
    return list(islice(dict.fromkeys(lines), MOST))


def room(recipe: Recipe) -> int:
    """The characters of an example at most: a model whose tokens are characters reads all of it, and may go on."""
    if recipe.text.units != "characters":
        return SHORT
    limit = recipe.data.max_tokens
    return max(1, min(SHORT, limit - 2 - (limit // 4 if recipe.task == "language-model" else 0)))


def _whole(text: str, most: int) -> list[str]:
    """The lines of a text that can be read, each short."""
    lines = (_short(line, most) for line in _lines(well_formed(text)))
    return [line for line in lines if line and LOST not in line]


def _of_validation(folder: Path, recipe: Recipe) -> Iterator[str]:
    """Sentences that a model of gaps is validated on, some words of each left out."""
    held = validated(folder)
    if held is None:
        return
    for number, line in enumerate(line for text in held.texts for line in _whole(text, room(recipe))):
        piece = held.piece if recipe.task == "masked-lm" else None
        found = gapped(line, f"{recipe.seed} {number}", held.common, piece)
        if found is not None:
            yield found


def demonstrated(recipe: Recipe) -> bool:
    """Whether a model is one that ``regard demo`` made, as far as its sizes tell."""
    model, text = recipe.model, recipe.text
    sizes = (getattr(model, "encoder_layers", 0), getattr(model, "heads", 0), model.d_model, text.vocabulary)
    languages = (text.source_language, text.target_language)
    return recipe.task == "translation" and languages == ("en", "de") and sizes == SIZES


def _of_grammar(seed: int) -> list[str]:
    """The classic two sentences, then tested ones: some whose pronoun tells by its gender what it is, some others."""
    from regard.data.grammar import classic, generate

    pairs = list(generate("test", DRAWN, seed))
    telling = [pair for pair in pairs if pair.pronoun and pair.pronoun.decides]
    others = [pair for pair in pairs if not pair.pronoun]
    return [pair.source for pair in (*classic(), *telling[:PRONOUNS], *others[:OTHERS])]


def _samples(log: Path) -> Iterator[str]:
    """What the newest samples of a log were made from, the newest first."""
    try:
        with opened(log) as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = [line for line in file.read().split(b"\n") if line.startswith(_SAMPLE)]
    except OSError:
        return
    for line in reversed(lines):
        try:
            source = json.loads(line).get("source")
        except ValueError:  # a torn line
            continue
        if isinstance(source, str):
            yield source


def _validated(folder: Path) -> Iterator[str]:
    """The first sentences that a translator is validated on, while it has shown none yet."""
    from regard.data.prepared import VALIDATION

    try:
        with opened(folder / "training" / "data" / VALIDATION[0]) as file:
            begin = file.read(FIRST)
    except OSError:
        return
    yield from islice(begin.decode(errors="replace").split("\n"), MOST)


def _lines(text: str) -> list[str]:
    """The lines of a text; of a window cut out of running text the first and the last are no whole ones."""
    lines = [line.strip() for line in text.split("\n")]
    return lines[1:-1] if len(lines) > 2 else [max(lines, key=len)]


def _short(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    return line[:most].rpartition(" ")[0] or line[:most]
