"""Unicode normalisation and lower-casing before encoding; set in the recipe, saved with the tokenizer."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from tokenizers import normalizers

Normalisation = Literal["none", "nfc", "nfkc"]

FORMS: dict[str, normalizers.Normalizer | None] = {
    "none": None,
    "nfc": normalizers.NFC(),
    "nfkc": normalizers.NFKC(),
}
"""The tokenizer library's own forms, not Python's: a model then means the same under every version of Python."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """``text`` without surrogates, which are no characters: pairs are joined, lone ones become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
    text = replace_surrogates(text)
    if text.isascii():
        return text.lower() if lowercase else text
    found = normaliser(form, lowercase)
    return text if found is None else found.normalize_str(text)
