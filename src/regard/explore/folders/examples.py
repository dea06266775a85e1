"""Example texts for a model: from its validation set, its logged samples or its demo; cloze examples with gaps."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from regard.config import Recipe
from regard.data.prepare.shards import Shards
from regard.explore.folders.regular_files import open_regular_file, refuse_irregular
from regard.explore.folders.training_curves import LOG
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.tokenizers.byte_pieces import replace_surrogates
from regard.text.tokenizers.vocabulary import JOINT, read_tokenizer

if TYPE_CHECKING:
    from regard.text.tokenizers.vocabulary import AnyTokenizer

READ = 64
"""Most texts read."""
LONG = 4
"""Letters of a content word, about; shorter words are masked only if there is no other."""
TWICE = 7
"""Words of a sentence from which on two are masked."""
Piece = Callable[[str, bool], bool]
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True)
class ValidationTexts:
    """The first texts of a validation set.

    Args:
        texts: as they are, nothing left out.
        common: words that stand in more than half of them: they say the least.
        piece: whether a word is a single piece, after a space or (``False``) at the start of a text.
    """

    texts: Sequence[str]
    common: Collection[str]
    piece: Piece


def validation_examples(folder: Path) -> ValidationTexts | None:
    """The validation texts that a model's run prepared; ``None`` if they are gone.

    Args:
        folder: of the model, with its run.
    """
    data = folder / "training" / "data"
    try:
        refuse_irregular(data, None)
        tokenizer = read_tokenizer(data / JOINT)
        texts = list(_texts(data, tokenizer))
    except (OSError, ValueError, KeyError, IndexError, TypeError, RegardError):  # old files may be damaged in any way
        return None
    there = Counter(word for text in texts for word in set(_WORD.findall(text)))
    common = {word for word, count in there.items() if 2 * count > len(texts)}
    return ValidationTexts(
        texts, common, lambda word, behind: len(tokenizer.encode(f" {word}" if behind else word).ids) == 1
    )


def _texts(data: Path, tokenizer: AnyTokenizer) -> Iterator[str]:
    """The first texts of the prepared validation set, read lazily."""
    index = disk.json_of(data / "index.json")
    side = Shards(data, index["sides"]["validation.text"])
    return (tokenizer.decode(side.sentence(number).tolist()) for number in range(min(READ, side.count)))


def make_cloze(line: str, seed: str, common: Collection[str] = (), piece: Piece | None = None) -> str | None:
    """Replace one or two words of a sentence by gaps, chosen by a seed; ``None`` if impossible.

    Args:
        line: a sentence.
        seed: anything; the same gives the same.
        common: words that are left out only where there are no others.
        piece: whether a word is a single piece, where only such may be left out.
    """
    words = list(_WORD.finditer(line))
    can = [word for word in words if piece is None or piece(word.group(), word.start() > 0)]
    telling = [word for word in can if len(word.group()) >= LONG and word.group() not in common] or can
    if len(words) < 2 or not telling:
        return None
    drawn = Random(seed).sample(telling, min(len(telling), 1 + (len(words) >= TWICE)))
    for word in sorted(drawn, key=lambda one: -one.start()):
        line = line[: word.start()] + "[MASK]" + line[word.end() :]
    return line


MOST, SHORT = 6, 160
"""Number of examples, and most characters of each; fewer if the model reads fewer."""
PRONOUNS, OTHERS, DRAWN = 2, 2, 60
"""Sentences of the demonstration: with a pronoun, without one, and how many to draw to find them."""
FIRST = 1 << 16
"""Bytes of a validation set to search for its first sentences."""
TAIL = 1 << 22
"""Bytes at the end of a log to search for its newest samples."""
SIZES = (3, 4, 128, 2400)
"""Sizes of the demonstration's model: layers, heads, d_model and vocabulary."""
GAP = "[MASK]"
LOST = "\ufffd"
"""Replacement for invalid bytes, where a character was cut."""
GAPPED = ("masked-lm", "span-corruption")
PLAIN = "The old cat [MASK] on the green mat."
"""Fallback example with a gap."""
_NAMED = re.compile(r"<extra_(?:id_)?\d+>")
_SAMPLE = b'{"kind": "sample"'


def examples(folder: Path, recipe: Recipe) -> list[str]:
    """Up to six short texts for a model; none for image models or if nothing is known."""
    if recipe.task == "image-classification":
        return []
    if is_demo_recipe(recipe):
        return _demo_sentences(recipe.seed)
    with_gaps = recipe.task in GAPPED
    if with_gaps and (made := _unique(_cloze_examples(folder, recipe))):
        return made
    texts = (_NAMED.sub(GAP, text) for text in (*_samples(folder / LOG), *_validation_sentences(folder)))
    lines = (line for text in texts for line in _readable_lines(text, max_characters(recipe)))
    found = _unique(line for line in lines if GAP in line or not with_gaps)
    return found or ([PLAIN] if with_gaps else [])


def _unique(lines: Iterable[str]) -> list[str]:
    return list(islice(dict.fromkeys(lines), MOST))


def max_characters(recipe: Recipe) -> int:
    """Most characters of an example; for a character-level model its context, with room to continue."""
    if recipe.text.units != "characters":
        return SHORT
    limit = recipe.data.max_tokens
    return max(1, min(SHORT, limit - 2 - (limit // 4 if recipe.task == "language-model" else 0)))


def _readable_lines(text: str, most: int) -> list[str]:
    """The readable lines of a text, each shortened."""
    lines = (_shorten(line, most) for line in _lines(replace_surrogates(text)))
    return [line for line in lines if line and LOST not in line]


def _cloze_examples(folder: Path, recipe: Recipe) -> Iterator[str]:
    """Validation sentences of a masked or span-corruption model, with gaps."""
    held = validation_examples(folder)
    if held is None:
        return
    for number, line in enumerate(
        line for text in held.texts for line in _readable_lines(text, max_characters(recipe))
    ):
        piece = held.piece if recipe.task == "masked-lm" else None
        found = make_cloze(line, f"{recipe.seed} {number}", held.common, piece)
        if found is not None:
            yield found


def is_demo_recipe(recipe: Recipe) -> bool:
    """Whether a model has the sizes of the one that ``regard demo`` makes."""
    model, text = recipe.model, recipe.text
    sizes = (getattr(model, "encoder_layers", 0), getattr(model, "heads", 0), model.d_model, text.vocabulary)
    languages = (text.source_language, text.target_language)
    return recipe.task == "translation" and languages == ("en", "de") and sizes == SIZES


def _demo_sentences(seed: int) -> list[str]:
    """The classic two sentences, then test sentences: some with a gender-marked pronoun, some without one."""
    from regard.data.demo.grammar import classic, generate

    pairs = list(generate("test", DRAWN, seed))
    telling = [pair for pair in pairs if pair.pronoun and pair.pronoun.decides]
    others = [pair for pair in pairs if not pair.pronoun]
    return [pair.source for pair in (*classic(), *telling[:PRONOUNS], *others[:OTHERS])]


def _samples(log: Path) -> Iterator[str]:
    """The sources of the newest samples in a log, newest first."""
    try:
        with open_regular_file(log) as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = [line for line in file.read().split(b"\n") if line.startswith(_SAMPLE)]
    except OSError:
        return
    for line in reversed(lines):
        try:
            source = json.loads(line).get("source")
        except ValueError:  # an incomplete line
            continue
        if isinstance(source, str):
            yield source


def _validation_sentences(folder: Path) -> Iterator[str]:
    """The first validation sentences of a translator that has logged no samples yet."""
    from regard.data.prepare.prepared import VALIDATION

    try:
        with open_regular_file(folder / "training" / "data" / VALIDATION[0]) as file:
            begin = file.read(FIRST)
    except OSError:
        return
    yield from islice(begin.decode(errors="replace").split("\n"), MOST)


def _lines(text: str) -> list[str]:
    """The lines of a text; in a window of running text the first and last are incomplete and left out."""
    lines = [line.strip() for line in text.split("\n")]
    return lines[1:-1] if len(lines) > 2 else [max(lines, key=len)]


def _shorten(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    return line[:most].rpartition(" ")[0] or line[:most]
