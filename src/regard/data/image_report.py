"""Labelled images looked at before any time is spent: as labelled texts are, told in the words of images."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from regard.data.corpora import Corpus
from regard.data.label_report import LabelReport, look
from regard.data.labels import Kind

_TEXT = re.compile(r"\b(a )?([tT])ext(s?)\b")
_SWAPPED = ": are the columns of text and label swapped? Name them."
_COLUMN = ": is the label in another column? Name it by --columns."


@dataclass(frozen=True)
class ImageReport(LabelReport):
    """A report on labelled images; ``pairs`` counts images."""

    @property
    def verdict(self) -> str:
        """Usable or not, and why, in plain words."""
        return of_images(super().verdict)


def look_at_images(corpora: Sequence[Corpus], kind: Kind, others: Mapping[str, Corpus] | None = None) -> ImageReport:
    """Everything suspect in labelled images: repeated and leaked ones, contradicting, rare or missing labels.

    Args:
        corpora: what would be learned from.
        kind: whether an image has one label, any number of labels, or a number.
        others: validation and test images by name, looked for in those that are learned from.
    """
    found = look(corpora, kind, others)
    findings = tuple(replace(finding, sentence=of_images(finding.sentence)) for finding in found.findings)
    values = {one.name: getattr(found, one.name) for one in fields(found)}
    return ImageReport(**{**values, "findings": findings})


def of_images(sentence: str) -> str:
    """A sentence about texts, said of images."""

    def image(found: re.Match[str]) -> str:
        return ("an " if found[1] else "") + ("I" if found[2] == "T" else "i") + "mage" + found[3]

    return _TEXT.sub(image, sentence.replace(_SWAPPED, _COLUMN))
