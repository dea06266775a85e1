"""From text to byte-level pieces: Unicode normalisation, the split into words, letters for bytes [Radford19 §2.2]."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

Normalisation = Literal["none", "nfc", "nfkc"]

FORMS: dict[str, normalizers.Normalizer | None] = {
    "none": None,
    "nfc": normalizers.NFC(),
    "nfkc": normalizers.NFKC(),
}
"""The tokenizer library's own forms, not Python's: a model then means the same under every version of Python."""

_SURROGATE = re.compile("[\ud800-\udfff]")
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


def replace_surrogates(text: str) -> str:
    """``text`` without surrogates, which are no characters: pairs are joined, lone ones become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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


def byte_letters() -> dict[int, str]:
    """The printable letter each byte is written as: itself where printable in Latin-1, else one from U+0100 on."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in own}
    others = (byte for byte in range(256) if byte not in letters)
    return letters | {byte: chr(0x100 + place) for place, byte in enumerate(others)}


LETTER_OF = byte_letters()
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


def latin_words(text: str) -> list[str] | None:
    """The words of a text in Latin letters, as :data:`WORD` splits it; None for any other text."""
    return _LATIN_WORD.findall(text) if _LATIN.fullmatch(text) else None


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
