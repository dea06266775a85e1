"""Incremental detokenisation: ids in, whole characters out; and stop strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regard.system.errors import UsageError
from regard.text.tokenizers.vocabulary import AnyTokenizer


class StopStrings:
    """Stop strings: generation ends at the first complete one, which is not part of the output.

    Called with the tokens of an output it says whether to stop (see ``stop`` of the scheduler).

    Args:
        tokenizer: of the tokens it is called with.
    """

    def __init__(self, texts: Iterable[str], tokenizer: AnyTokenizer) -> None:
        self.texts = tuple(texts)
        if not all(self.texts):
            raise UsageError("an empty stop string matches everywhere: nothing could be generated", "stop")
        self._tokenizer = tokenizer
        # A piece has a byte at least; a few more for symbols, which have none.
        self._tail = max((len(text.encode()) for text in self.texts), default=0) + 8

    def __call__(self, tokens: Sequence[int]) -> bool:
        return bool(self.texts) and self.place(self._tokenizer.decode(tokens[-self._tail :])) is not None

    def place(self, text: str) -> int | None:
        """Start of the first complete stop string in ``text`` (of two, the longer); None without one."""
        found = [(begin + len(stop), begin) for stop in self.texts if (begin := text.find(stop)) >= 0]
        return min(found)[1] if found else None

    def cut(self, text: str) -> str:
        """``text`` up to its stop."""
        return text[: self.place(text)]

    def certain(self, text: str) -> int:
        """Number of leading characters that cannot be part of a stop string, whatever follows."""
        longest = max((len(stop) for stop in self.texts), default=1) - 1
        for begin in range(max(0, len(text) - longest), len(text)):
            if any(stop.startswith(text[begin:]) for stop in self.texts):
                return begin
        return len(text)


class Decoder:
    """Gives an output's text as soon as it is certain: whole characters, and no beginning of a stop.

    Args:
        tokenizer: of the ids it is fed with.
        stops: where the text ends; ``stopped`` then says so, and nothing more comes.
    """

    def __init__(self, tokenizer: AnyTokenizer, stops: StopStrings | None = None) -> None:
        self._reader = tokenizer.incremental()
        self._stops = stops
        self._held = ""
        self.stopped = False

    def feed(self, id: int) -> str:
        """The text that is certain with this id."""
        return self._more(self._reader.feed(id))

    def finish(self) -> str:
        """The remaining text of a complete output."""
        if self.stopped:
            return ""
        more = self._more(self._reader.finish())
        return more if self.stopped else more + self._held

    def _more(self, text: str) -> str:
        if self.stopped or self._stops is None:
            return "" if self.stopped else text
        self._held += text
        place = self._stops.place(self._held)
        self.stopped = place is not None
        if place is None:
            place = self._stops.certain(self._held)
        given, self._held = self._held[:place], self._held[place:]
        return given
