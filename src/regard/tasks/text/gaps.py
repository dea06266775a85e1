"""Gaps in texts: masks and sentinels, read as token ids, and shown by name in decoded text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.tasks.text.task import Read, read_as
from regard.text.tokenizers.vocabulary import AnyTokenizer


@dataclass(frozen=True)
class GappedText:
    """A text with gaps.

    Args:
        text: as the tokenizer has it, each gap by its name.
        read: its pieces and symbols, each with its characters; a symbol has none.
        gaps: which of these are symbols.
    """

    text: str
    read: tuple[Read, ...]
    gaps: tuple[int, ...]

    @property
    def ids(self) -> list[int]:
        """Of pieces and symbols."""
        return [id for id, _, _ in self.read]


class Gaps:
    """Finds the gaps of texts by name.

    The space before a gap belongs to it, as it belongs to a word's first piece; characters as units have their spaces
    apart.

    Args:
        tokenizer: of the texts between the gaps.
        named: the symbol of each name.
    """

    def __init__(self, tokenizer: AnyTokenizer, named: Mapping[str, int]) -> None:
        self._tokenizer, self._named = tokenizer, named
        names = sorted(named, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, names)) if names else r"(?!)")
        self._apart = getattr(tokenizer, "units", "pieces") == "characters"

    def parse(self, text: str) -> GappedText:
        """A text with its gaps, if it has any."""
        parts, names = self.pattern.split(text), self.pattern.findall(text)
        known, read, gaps = "", list[Read](), []
        for number, part in enumerate(parts):
            before_gap = number < len(names)
            taken = part.removesuffix(" ") if before_gap and not self._apart else part
            plain, inner = read_as(self._tokenizer, taken, ())
            read += [(id, start + len(known), end + len(known)) for id, start, end in inner]
            known += plain + part[len(taken) :]
            if before_gap:
                gaps.append(len(read))
                read.append((self._named[names[number]], len(known), len(known)))
                known += names[number]
        return GappedText(known, tuple(read), tuple(gaps))

    def ids_batch(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text, its gaps among them."""
        found = self._tokenizer.ids_batch(texts)
        for number, text in enumerate(texts) if self._named else ():
            if self.pattern.search(text):
                found[number] = np.array(self.parse(text).ids, np.int64)
        return found


def sentinel_gaps(tokenizer: AnyTokenizer) -> Gaps:
    """The sentinels of a vocabulary as gaps, named ``<extra_0>``, of a T5 ``<extra_id_0>``; it may have none."""
    return Gaps(tokenizer, {tokenizer.piece(id): id for id in tokenizer.sentinels})


def decode_with_offsets(
    tokenizer: AnyTokenizer, ids: Iterable[int], symbols: Collection[int]
) -> tuple[str, list[Read]]:
    """Generated ids as text, symbols by name after a space; and each id with its characters."""
    text, read, begun, run = "", list[Read](), 0, list[int]()
    for id in ids:
        if id in symbols:
            text, run = text + ("" if not text or text[-1].isspace() else " "), []
            read.append((id, len(text), len(text)))
            text += tokenizer.piece(id)
            continue
        begun = begun if run else len(text)
        run.append(id)
        start, text = len(text), text[:begun] + tokenizer.decode(run)
        read.append((id, min(start, len(text)), len(text)))
    return text, read


def decode_with_symbols(tokenizer: AnyTokenizer, ids: Iterable[int], symbols: Collection[int]) -> str:
    """The text of ids, with the names of these symbols in it, a space before each; other symbols are omitted."""
    text, waiting = "", []
    for id in ids:
        if id not in symbols:
            waiting.append(id)
            continue
        text += tokenizer.decode(waiting)
        waiting = []
        text += ("" if not text or text[-1].isspace() else " ") + tokenizer.piece(id)
    return text + tokenizer.decode(waiting)
