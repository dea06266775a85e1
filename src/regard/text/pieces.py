"""Byte-level pieces: how a piece is written in the vocabulary, and the bytes it stands for [Radford19 §2.2]."""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

WORD = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
"""A word takes the space before it; letters keep their combining marks, so Hindi words stay whole.

Letters and punctuation never share a word, hence no merge can ever build ``</s>`` or ``<unk>``: in text they stay text.
"""


def byte_letters() -> dict[int, str]:
    """The printable letter each byte is written as: itself where printable in Latin-1, else one from U+0100 on."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in own}
    others = (byte for byte in range(256) if byte not in letters)
    return letters | {byte: chr(0x100 + place) for place, byte in enumerate(others)}


LETTER_OF = byte_letters()
BYTE_OF = {letter: byte for byte, letter in LETTER_OF.items()}
ALPHABET = sorted(BYTE_OF)


def spell(text: str) -> str:
    """``text`` as the letters of its UTF-8 bytes."""
    return "".join(LETTER_OF[byte] for byte in text.encode())


def unspell(letters: str) -> bytes:
    """The bytes that a piece's letters stand for."""
    return bytes(BYTE_OF[letter] for letter in letters)


def assemble(model: models.BPE, normaliser: normalizers.Normalizer | None) -> Tokenizer:
    """A library tokenizer: normalise, split into words, write bytes as letters, merge; it never adds a symbol."""
    core = Tokenizer(model)
    if normaliser is not None:
        core.normalizer = normaliser
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORD), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    return core
