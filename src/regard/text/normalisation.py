"""Unicode normalisation before encoding; a choice of the recipe, saved with the tokenizer."""

from __future__ import annotations

import re
from typing import Literal

from tokenizers import normalizers

Normalisation = Literal["none", "nfc", "nfkc"]

NORMALISERS: dict[str, normalizers.Normalizer | None] = {
    "none": None,
    "nfc": normalizers.NFC(),
    "nfkc": normalizers.NFKC(),
}
"""The tokenizer library's own forms, not Python's: a model then means the same under every version of Python."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """``text`` without surrogates, which are no characters: pairs are joined, lone ones become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def normalise(text: str, form: Normalisation) -> str:
    """``text`` in one Unicode normal form; ``none`` only makes it well-formed."""
    text = well_formed(text)
    normaliser = NORMALISERS[form]
    if normaliser is None or text.isascii():
        return text
    return normaliser.normalize_str(text)
