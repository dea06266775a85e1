"""Sentences with gaps for a model of gaps: what it is validated on, with whole words left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from regard import disk
from regard.data.shards import Shards
from regard.errors import RegardError
from regard.explore.regular import refuse_irregular
from regard.text.vocabulary import JOINT, read_tokenizer

if TYPE_CHECKING:
    from regard.text.vocabulary import AnyTokenizer

READ = 64
"""Texts that are read at most."""
LONG = 4
"""Letters of a word that says something of its own, about: shorter ones are left out only where there is no other."""
TWICE = 7
"""Words of a sentence from which on two are left out."""
Piece = Callable[[str, bool], bool]
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True)
class Validated:
    """The first texts of a validation set.

    Args:
        texts: as they are, nothing left out.
        common: words that stand in more than half of them: they say the least.
        piece: whether a word is a single piece, behind a space or (``False``) where a text begins.
    """

    texts: Sequence[str]
    common: Collection[str]
    piece: Piece


def validated(folder: Path) -> Validated | None:
    """What a model of texts is validated on, as its run has prepared it; ``None`` where nothing of it is left.

    Args:
        folder: of the model, with its run.
    """
    data = folder / "training" / "data"
    try:
        refuse_irregular(data, None)
        tokenizer = read_tokenizer(data / JOINT)
        texts = list(_texts(data, tokenizer))
    except (OSError, ValueError, KeyError, IndexError, TypeError, RegardError):  # whatever may be wrong with old files
        return None
    there = Counter(word for text in texts for word in set(_WORD.findall(text)))
    common = {word for word, count in there.items() if 2 * count > len(texts)}
    return Validated(texts, common, lambda word, behind: len(tokenizer.encode(f" {word}" if behind else word).ids) == 1)


def _texts(data: Path, tokenizer: AnyTokenizer) -> Iterator[str]:
    """The first texts of the prepared validation set; nothing more is read from the disk."""
    index = disk.json_of(data / "index.json")
    side = Shards(data, index["sides"]["validation.text"])
    return (tokenizer.decode(side.sentence(number).tolist()) for number in range(min(READ, side.count)))


def gapped(line: str, seed: str, common: Collection[str] = (), piece: Piece | None = None) -> str | None:
    """A sentence with one or two of its words left out, drawn by a seed; ``None``: none of them can be.

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
