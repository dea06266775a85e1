"""From text to byte-level pieces: Unicode normalisation, the split into words, letters for bytes [Radford19 §2.2].

As no piece spans a blank, what lies between the blanks of texts, a chunk, is cut, counted and encoded by itself. A text
repeats most of its chunks, so that few of many are split into words and pieces, and each of them once.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nlargest
from itertools import islice
from threading import Lock
from typing import Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from regard.text.lines import replace_surrogates

Ids = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)
Normalisation = Literal["none", "nfc", "nfkc"]

FORMS: dict[str, normalizers.Normalizer | None] = {"none": None, "nfc": normalizers.NFC(), "nfkc": normalizers.NFKC()}
"""The tokenizer library's own forms, not Python's: a model then means the same under every version of Python."""

_FIRST_MARK = "\u0300"
"""The first character that combines with the one before it."""
WORD = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
"""A word takes the space before it; letters keep their combining marks, so Hindi words stay whole.

Letters and punctuation never share a word, hence no merge can ever build ``</s>`` or ``<unk>``: in text they stay text.
"""
CHARACTER = r"[\s\S]"
Units = Literal["pieces", "characters"]
SPLIT: dict[Units, str] = {"pieces": WORD, "characters": CHARACTER}
_ESCAPED = re.compile("[\udc80-\udcff]")
_LETTER = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af"
_LATIN = re.compile(f"[ -~{_LETTER}]*")
_LATIN_WORD = re.compile(rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{_LETTER}]+| ?[0-9]+| ?[^ 0-9{_LETTER}]+| +(?![^ ])| +")
"""What :data:`WORD` matches in printable ASCII and Latin letters."""
FIRST = "\0"
"""Stands before the first chunk of each text; every other one begins with a line break, or there was a blank before."""
LONGEST = 10_000
"""Characters of a text that words are counted in at once: learning takes the square of a word's length."""
MOST, CHARACTERS = 1 << 19, 1 << 24
"""Most chunks that are remembered, and most characters of them, but for those of the last texts."""
SHORT = CHARACTERS // MOST
"""Most characters of a chunk that is remembered before it is met."""
OFTEN = 4
"""How often such a chunk occurs: rarer ones are encoded by the process that meets them."""
LINES = 256
"""Chunks that are encoded as one text."""
FED = 1000
"""Letters that the trainer is given at once, about."""
WHITE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What the library takes for white space, for a pattern's brackets."""
_CUT = re.compile(f" (?=[^{WHITE}])|(?=\n[^{WHITE}])")
"""The last of the white space before a word begins a word, alone or with what is behind it, and the others end one."""


def is_latin(text: str) -> bool:
    """Whether all characters are below U+0100, found several times faster than the largest of them."""
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


@cache
def normaliser(form: Normalisation, lowercase: bool = False) -> normalizers.Normalizer | None:
    """The library's normaliser of a form, None where it would do nothing.

    Letters become small one by one, whatever the language. The form stands on both sides of that: a letter may hide
    behind a compatible character, and small letters may compose where large ones did not.
    """
    shape = FORMS[form]
    if not lowercase:
        return shape
    around = [] if shape is None else [shape]
    return normalizers.Sequence([*around, normalizers.Lowercase(), *around])


def normalise(text: str, form: Normalisation, lowercase: bool = False) -> str:
    """``text`` in one Unicode normal form, lower-cased on request; ``none`` only replaces lone surrogates."""
    if text.isascii():
        return text.lower() if lowercase else text
    if form != "nfkc" and not lowercase and (is_latin(text) or max(text) < _FIRST_MARK):
        return text  # letters without marks are composed already
    text = replace_surrogates(text)
    found = normaliser(form, lowercase)
    return text if found is None else found.normalize_str(text)


_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
LETTER_OF = {byte: chr(byte) for byte in _PRINTABLE}
LETTER_OF |= {byte: chr(0x100 + place) for place, byte in enumerate(sorted({*range(256)} - {*_PRINTABLE}))}
"""The letter each byte is written as: itself where printable in Latin-1, else one from U+0100 on."""
BYTE_OF = {letter: byte for byte, letter in LETTER_OF.items()}
ALPHABET = sorted(BYTE_OF)
_BYTE_OF_LETTER = {ord(letter): byte for letter, byte in BYTE_OF.items()}


def spell(text: str) -> str:
    """``text`` as the letters of its UTF-8 bytes."""
    return text.encode().decode("latin-1").translate(LETTER_OF)


def unspell(letters: str) -> bytes:
    """The bytes that a piece's letters stand for; each must be one of :data:`ALPHABET`."""
    return letters.translate(_BYTE_OF_LETTER).encode("latin-1")


def readable(held: bytes) -> str:
    """A piece's bytes as people read them: a space is ``▁``, a fragment of a character its bytes, e.g. ``<0xE2>``."""
    try:
        text = held.decode().replace(" ", "▁")
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in held)
    return "".join(c if c.isprintable() else f"<0x{ord(c):02X}>" for c in text)


def assemble(model: models.BPE, normaliser: normalizers.Normalizer | None, units: Units = "pieces") -> Tokenizer:
    """A library tokenizer: normalise, split, write bytes as letters, merge; it never adds a symbol.

    The text is split into words, within which pieces are merged, or where units are characters into these.
    """
    core = Tokenizer(model)
    if normaliser is not None:
        core.normalizer = normaliser
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT[units]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    return core


def word_starts(held: Sequence[bytes], splitter: pre_tokenizers.PreTokenizer) -> NDArray[np.bool_]:
    """Which byte strings begin a word when ``splitter`` splits their concatenation.

    Bytes that are no UTF-8, which only a model or chance puts there, count as one strange character each.
    """
    whole = b"".join(held)
    text = whole.decode("utf-8", "surrogateescape")
    words = splitter.pre_tokenize_str(_ESCAPED.sub("\ufffd", text))
    begin_of = np.array([begin for _, (begin, _) in words], np.int64)
    if not text.isascii():
        # A character's first byte: an escaped one is one byte, any other as many as UTF-8 has.
        widths = [len(character.encode("utf-8", "surrogateescape")) for character in text]
        begin_of = np.cumsum([0, *widths])[begin_of]
    lengths = np.fromiter(map(len, held), np.int64, len(held))
    return np.isin(np.cumsum(lengths) - lengths, begin_of)


def cut_chunks(texts: Sequence[str], normalised: Callable[[str], str]) -> list[str]:
    """The chunks of normalised texts, in order; each text has at least one, and its first begins with :data:`FIRST`.

    Where there is other white space than single blanks between words, a line break begins a chunk too, and what stands
    before the last of several blanks or line breaks ends one.
    """
    if not texts:
        return []
    between = f" {FIRST}"
    whole = FIRST + between.join(texts)
    whole = normalised(whole) if is_latin(whole) else FIRST + between.join(map(normalised, texts))
    found = whole.split()
    if whole.count(FIRST) == len(texts) and " ".join(found) == whole:
        return found
    found = []
    for text in map(normalised, texts):
        first, *rest = [text] if FIRST in text else _CUT.split(text)
        found += [FIRST + first, *rest]
    return found


def chunk_text(chunk: str) -> str:
    """A chunk as it stands in its text, with the blank before it."""
    if chunk.startswith(FIRST):
        return chunk[1:]
    return chunk if chunk.startswith("\n") else f" {chunk}"


class ChunkCounter:
    """Counts the chunks of texts, and at last their words.

    Args:
        normalisation: the Unicode form that texts are brought into.
        units: what is counted at last.
        lowercase: texts are lower-cased.
    """

    def __init__(self, normalisation: Normalisation = "nfc", units: Units = "pieces", lowercase: bool = False) -> None:
        self.normalisation: Normalisation = normalisation
        self.units: Units = units
        self.lowercase = lowercase
        self.chunks, self._units = Counter[str](), Counter[str]()
        self._split = count_words if units == "pieces" else count_characters

    def add(self, texts: Sequence[str]) -> None:
        """Count texts; one longer than :data:`LONGEST` in parts of that length."""
        if max(map(len, texts), default=0) > LONGEST:
            texts = [text[begin : begin + LONGEST] for text in texts for begin in range(0, len(text), LONGEST)]
        self.chunks.update(cut_chunks(texts, lambda text: normalise(text, self.normalisation, self.lowercase)))

    @property
    def content(self) -> bytes:
        """What was counted, for :meth:`merge`; long chunks, which hardly come again, are split before."""
        long = {chunk: count for chunk, count in self.chunks.items() if len(chunk) > SHORT}
        rest = {chunk: count for chunk, count in self.chunks.items() if len(chunk) <= SHORT}
        words = self._split(long)
        lists = [[*rest], [*rest.values()], [*words], [*words.values()]]  # quicker than objects
        return json.dumps(lists, ensure_ascii=False).encode()

    def merge(self, content: bytes) -> None:
        """Add what another process counted."""
        chunks, times, units, often = json.loads(content)
        self.chunks.update(dict(zip(chunks, times, strict=True)))
        self._units.update(dict(zip(units, often, strict=True)))

    def counts(self, blank: bool = False) -> Counter[str]:
        """How often each word occurs, in byte letters; of characters how often each does that has several bytes.

        Args:
            blank: the first word of a text has a blank before it, too, as a SentencePiece model puts one there.
        """
        chunks: Mapping[str, int] = self.chunks
        if blank:
            chunks = {chunk.replace(FIRST, f"{FIRST} ", 1): count for chunk, count in chunks.items()}
        return self._split(chunks) + self._units


_LINE_BREAK = spell("\n")


def count_words(chunks: Mapping[str, int]) -> Counter[str]:
    """The words of counted chunks, in byte letters."""
    latin, others = defaultdict[str, int](int), Counter[str]()
    splitter = assemble(models.BPE(), None).pre_tokenizer
    for chunk, count in chunks.items():
        if chunk.isalpha() and is_latin(chunk):  # one word, as most are
            latin[f" {chunk}"] += count
            continue
        text = chunk_text(chunk)
        if text.startswith("\n") and not chunk.startswith(FIRST):
            text = text[1:]
            others[_LINE_BREAK] += count
        if _LATIN.fullmatch(text):
            for word in _LATIN_WORD.findall(text):
                latin[word] += count
        else:
            for word, _ in splitter.pre_tokenize_str(text):
                others[word] += count
    spelled = spell("\n".join(latin)).split(_LINE_BREAK) if latin else []
    counts = Counter(dict(zip(spelled, latin.values(), strict=True)))
    counts.update(others)
    return counts


def count_characters(chunks: Mapping[str, int]) -> Counter[str]:
    """The characters of several bytes in counted chunks."""
    counts = Counter[str]()
    for chunk, count in chunks.items():
        if not chunk.isascii():
            for character in chunk:
                if not character.isascii():
                    counts[character] += count
    return counts


def repeat_words(counts: Mapping[str, int]) -> Iterator[str]:
    """Each word as often as it was counted, between blanks, some at a time: what the library's trainer counts again.

    Words of one letter are left out, since nothing is learned from them: they have no pair.
    """
    waiting: list[str] = []
    room = FED
    for word, count in counts.items():
        each = len(word) + 1
        while count and len(word) > 1:
            now = min(count, max(1, room // each))
            waiting.append(f"{word} " * now)
            count, room = count - now, room - now * each
            if room < each:
                yield "".join(waiting)
                waiting, room = [], FED
    if waiting:
        yield "".join(waiting)


class ChunkIds:
    """The ids of chunks, remembered.

    Args:
        encode: the ids of texts, each by itself.
        sizes_V: of each id its bytes.
    """

    def __init__(self, encode: Callable[[list[str]], list[list[int]]], sizes_V: Sequence[int]) -> None:
        self._encode, self._sizes_V = encode, np.array(sizes_V, np.int64)
        self._lock = Lock()
        """Threads may encode at the same time."""
        self._clear()

    def _clear(self) -> None:
        self._numbers, self._characters = defaultdict[str, int](), 0
        self._numbers.default_factory = self._numbers.__len__  # numbers what it is asked for, as it first is
        self._ids, self._ends, self._first = _Growing(np.int64), _Growing(np.int64), _Growing(np.bool_)
        self._ends.add(np.zeros(1, np.int64))

    def remember(self, counts: Mapping[str, int]) -> None:
        """Encode chunks that are met again and again, the most frequent ones; what is met besides has room left."""
        often = [chunk for chunk, count in counts.items() if count >= OFTEN and len(chunk) <= SHORT]
        self.find(nlargest(MOST // 2, often, key=counts.__getitem__) if len(often) > MOST // 2 else often)

    def find(self, chunks: Sequence[str]) -> tuple[Ids, Ids]:
        """``(ids_T, lengths_B)``: the ids of texts end to end, and how many each has."""
        with self._lock:
            numbers_C = self._number(chunks)
            ends_C = self._ends.held[numbers_C + 1]
            lengths_C = ends_C - self._ends.held[numbers_C]
            last_C = lengths_C.cumsum()
            places_T = np.arange(last_C[-1] if len(last_C) else 0) + np.repeat(ends_C - last_C, lengths_C)
            starts_B = np.flatnonzero(self._first.held[numbers_C])
            lengths_B = np.add.reduceat(lengths_C, starts_B) if len(starts_B) else np.zeros(0, np.int64)
            return self._ids.held[places_T], lengths_B

    def _number(self, chunks: Sequence[str]) -> Ids:
        """The numbers of chunks, each of which is then encoded; if that breaks off, all are forgotten."""
        if len(self._numbers) > MOST or self._characters > CHARACTERS:
            self._clear()
        before = len(self._numbers)
        try:
            numbers_C = np.fromiter(map(self._numbers.__getitem__, chunks), np.int64, len(chunks))
            if fresh := len(self._numbers) - before:
                new = list(islice(reversed(self._numbers), fresh))[::-1]
                ids, lengths = self._encode_chunks([chunk_text(chunk) for chunk in new])
                self._ends.add(len(self._ids.held) + lengths.cumsum())
                self._ids.add(ids)
                self._first.add(np.array([chunk.startswith(FIRST) for chunk in new]))
                self._characters += sum(map(len, new))
        except BaseException:
            self._clear()
            raise
        return numbers_C

    def _encode_chunks(self, texts: list[str]) -> tuple[Ids, Ids]:
        """The ids of chunks end to end, and how many each has.

        Short ones without white space but a blank or line break before them are encoded as lines of longer texts, which
        takes half the time: a line break between them is a word of one piece, and whose the other pieces are is known
        by their bytes.
        """
        whole = [
            len(text) <= SHORT and text.split() == [text[1:] if text[:1] in (" ", "\n") else text] for text in texts
        ]
        lines = [text for text, is_line in zip(texts, whole, strict=True) if is_line]
        others = [text for text, is_line in zip(texts, whole, strict=True) if not is_line]
        groups = [lines[begin : begin + LINES] for begin in range(0, len(lines), LINES)]
        rows = [*map(self._split_lines, groups, self._encode(["\n".join(group) for group in groups]))]
        alone = [np.array(ids, np.int64) for ids in self._encode(others)]
        line_C, lengths_C = np.array(whole, np.bool_), np.zeros(len(texts), np.int64)
        lengths_C[line_C] = np.concatenate([np.zeros(0, np.int64), *(lengths for _, lengths in rows)])
        lengths_C[~line_C] = np.fromiter(map(len, alone), np.int64, len(alone))
        is_line_T = np.repeat(line_C, lengths_C)
        ids_T = np.zeros(len(is_line_T), np.int64)
        ids_T[is_line_T] = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in rows)])
        ids_T[~is_line_T] = np.concatenate([np.zeros(0, np.int64), *alone])
        return ids_T, lengths_C

    def _split_lines(self, lines: list[str], ids: list[int]) -> tuple[Ids, Ids]:
        """The ids of lines without the breaks between them, and how many each has."""
        ids_T = np.array(ids, np.int64)
        sizes_C = np.fromiter((len(line.encode()) for line in lines), np.int64, len(lines))
        last_C = np.searchsorted(self._sizes_V[ids_T].cumsum(), (sizes_C + 1).cumsum() - 1)
        lengths_C = np.diff(last_C, prepend=-2) - 1
        kept_T = np.ones(len(ids_T), np.bool_)
        kept_T[last_C[:-1] + 1] = False
        return ids_T[kept_T], lengths_C


class _Growing(Generic[Scalar]):
    """An array that is appended to, in place where there is room."""

    def __init__(self, kind: type[Scalar]) -> None:
        self._room: NDArray[Scalar] = np.zeros(1024, kind)
        self.held = self._room[:0]

    def add(self, more: NDArray[Scalar]) -> None:
        """Append these."""
        begin, end = len(self.held), len(self.held) + len(more)
        if end > len(self._room):
            self._room = np.concatenate([self.held, np.zeros(end, self._room.dtype)])
        self._room[begin:end] = more
        self.held = self._room[:end]


class Incremental(Protocol):
    """Turns ids into text one by one; what it gave, and what ``finish`` gives, is the text of all."""

    def feed(self, id: int) -> str:
        """Add an id; the text that has become certain."""

    def finish(self) -> str:
        """The remaining text; nothing may be fed after this."""


class ByteDecoder:
    """Pieces that are bytes: a character comes out with its last byte; bytes that are no UTF-8 become U+FFFD.

    Args:
        held: the bytes of an id.
    """

    def __init__(self, held: Callable[[int], bytes]) -> None:
        self._held = held
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, id: int) -> str:
        """The characters that are complete with this id."""
        return self._decoder.decode(self._held(id))

    def finish(self) -> str:
        """U+FFFD for a character that was never completed."""
        return self._decoder.decode(b"", True)


class WindowDecoder:
    """Pieces whose text depends on those before them: a window of ids is decoded again with each new one.

    Args:
        decode: the text of ids; further ids may only add to it, but for U+FFFD at its end.
    """

    window = 64
    kept = 16

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._given = ""

    def feed(self, id: int) -> str:
        """New text of the window; empty while it ends in an unfinished character."""
        self._ids.append(id)
        text = self._decode(self._ids)
        if text.endswith("\ufffd"):
            return ""
        new, self._given = text[len(self._given) :], text
        if len(self._ids) > self.window:
            self._ids = self._ids[-self.kept :]
            self._given = self._decode(self._ids)
        return new

    def finish(self) -> str:
        """The rest, if it ends in an unfinished character."""
        return self._decode(self._ids)[len(self._given) :]
