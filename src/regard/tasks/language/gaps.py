"""Gaps in texts: masks and sentinels, read as token ids, and shown by name in decoded text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from regard.system.errors import UsageError
from regard.tasks.text.task import Read, read_as
from regard.text.tokenizers.tokenizer import MASK
from regard.text.tokenizers.vocabulary import AnyTokenizer


@dataclass(frozen=True)
class GappedText:
    """A text with gaps.

    Args:
        text: as the tokenizer has it, each gap by its sentinel's name.
        read: its pieces and sentinels, each with its characters; a sentinel has none, as other symbols.
        gaps: which of these are sentinels.
    """

    text: str
    read: tuple[Read, ...]
    gaps: tuple[int, ...]

    @property
    def ids(self) -> list[int]:
        """Of pieces and sentinels."""
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
        names = sorted({*named, MASK}, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, names)))
        self._apart = getattr(tokenizer, "units", "pieces") == "characters"

    def parse(self, text: str) -> GappedText:
        """A text with its gaps, if it has any.

        Raises:
            UsageError: a gap has no symbol.
        """
        parts, symbols = self.pattern.split(text), self._symbols(text)
        known, read, gaps = "", list[Read](), []
        for number, part in enumerate(parts):
            before_gap = number < len(symbols)
            taken = part.removesuffix(" ") if before_gap and not self._apart else part
            plain, inner = read_as(self._tokenizer, taken, ())
            read += [(id, start + len(known), end + len(known)) for id, start, end in inner]
            known += plain + part[len(taken) :]
            if before_gap:
                symbol, name = symbols[number]
                gaps.append(len(read))
                read.append((symbol, len(known), len(known)))
                known += name
        return GappedText(known, tuple(read), tuple(gaps))

    def _symbols(self, text: str) -> list[tuple[int, str]]:
        """The symbol of each gap, and how it is shown."""
        return [(self._named[name], name) for name in self.pattern.findall(text)]


class SpanGaps(Gaps):
    """Gaps named as sentinels (``<extra_0>``); each ``[MASK]`` is the next sentinel that a text does not name."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        super().__init__(tokenizer, {tokenizer.piece(id): id for id in tokenizer.sentinels})

    def _symbols(self, text: str) -> list[tuple[int, str]]:
        """The sentinel of each gap.

        Raises:
            UsageError: a sentinel stands there twice, or there are more gaps than sentinels.
        """
        names = self.pattern.findall(text)
        named = [self._named[name] for name in names if name != MASK]
        if len(set(named)) < len(named):
            raise UsageError("every <extra_0>, <extra_1> … of a text must have another number", text[:40])
        if len(names) > len(self._named):
            raise UsageError(f"{len(names)} gaps are more than the {len(self._named)} the model knows", text[:40])
        free = iter(id for id in self._tokenizer.sentinels if id not in named)
        found = [next(free) if name == MASK else self._named[name] for name in names]
        return [(id, self._tokenizer.piece(id)) for id in found]


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
