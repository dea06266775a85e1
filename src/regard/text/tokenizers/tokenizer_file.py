"""Reader and writer of our ``tokenizer.json``; every entry is validated."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import models

from regard.config import FORMAT
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.normalisation import FORMS, Normalisation, normaliser
from regard.text.tokenizers.byte_pieces import ALPHABET, SPLIT, Units, assemble

END, UNKNOWN = "</s>", "<unk>"


class Parts(NamedTuple):
    """Parsed contents of our file: the arguments of :class:`regard.text.tokenizers.tokenizer.Tokenizer`."""

    vocabulary: list[str]
    merges: list[tuple[str, str]]
    normalisation: Normalisation
    units: Units
    lowercase: bool


def read_document(path: Path | str) -> Any:
    """The JSON of a tokenizer's file.

    Raises:
        RegardError: the file is missing, too large, or no JSON.
    """
    return disk.json_of(path, "tokenizer file")


def write(path: Path | str, content: bytes) -> None:
    """Write a tokenizer's file; it replaces an older one at once."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    with disk.naming(path):
        partial.write_bytes(content)
        os.replace(partial, path)


def parse_document(document: Any, where: str) -> Parts:
    """The parts of one of our files, each entry looked at before the library sees it.

    Raises:
        RegardError: it is damaged, newer, or not one of ours.
    """
    try:
        model = document["model"]
        if isinstance(model.get("format"), int) and model["format"] > FORMAT:
            found = model["format"]
            raise RegardError(f"format {found} was written by a newer Regard; this one reads format {FORMAT}", where)
        vocabulary = [name for name, _ in sorted(model["vocab"].items(), key=lambda entry: entry[1])]
        merges = [(left, right) for left, right in model["merges"]]
        known = [key for key, written in _NORMALISERS.items() if written == document["normalizer"]]
        units = [unit for unit in SPLIT if _splitter(unit) == document["pre_tokenizer"]]
        ours = _fits(vocabulary, merges, model["vocab"]) and bool(known) and bool(units)
        ours = ours and document["added_tokens"] == [] and _merges_fit(model, units[0])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        ours = False
    if not ours:
        raise RegardError("is damaged, or no tokenizer of Regard; learn it again with `regard train`", where)
    return Parts(vocabulary, merges, known[0][0], units[0], known[0][1])


def _splitter(units: Units) -> Any:
    return json.loads(assemble(models.BPE(), None, units).to_str())["pre_tokenizer"]


def _normaliser(form: Normalisation, lowercase: bool) -> Any:
    return json.loads(assemble(models.BPE(), normaliser(form, lowercase)).to_str())["normalizer"]


_NORMALISERS: dict[tuple[Normalisation, bool], Any] = {
    (form, lowercase): _normaliser(form, lowercase)  # type: ignore[arg-type,misc]
    for form in FORMS
    for lowercase in (False, True)
}


def _merges_fit(model: Any, units: Units) -> bool:
    """Whether the merges fit the units: pieces have merges, characters have none."""
    whole = bool(model.get("ignore_merges"))
    return whole and model["merges"] == [] if units == "characters" else not whole


def _fits(vocabulary: list[str], merges: list[tuple[str, str]], ids: dict[str, int]) -> bool:
    """Whether ids count from zero, symbols come first, then the bytes, then pieces that the merges build."""
    if [ids[name] for name in vocabulary] != list(range(len(vocabulary))) or vocabulary[:2] != [END, UNKNOWN]:
        return False
    first = vocabulary.index(ALPHABET[0])
    known = set(vocabulary[first:])
    spelled = all(name and not set(name) - set(ALPHABET) for name in known)
    built = all(left in known and right in known and left + right in known for left, right in merges)
    return first >= 2 and vocabulary[first : first + 256] == ALPHABET and spelled and built
