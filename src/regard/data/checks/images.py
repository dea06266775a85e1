"""Checks of labelled images: the checks of labelled texts, worded for images."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from regard.data.checks.labels import LabelReport, check_labels
from regard.data.corpora.labels import Kind
from regard.data.corpora.pairs import Corpus

_TEXT = re.compile(r"\b(a )?([tT])ext(s?)\b")
_SWAPPED = ": are the columns of text and label swapped? Name them."
_COLUMN = ": is the label in another column? Name it by --columns."


@dataclass(frozen=True)
class ImageReport(LabelReport):
    """A report on labelled images; ``pairs`` counts images."""

    @property
    def verdict(self) -> str:
        """Usable or not, and why, in plain words."""
        return reword_for_images(super().verdict)


def check_images(corpora: Sequence[Corpus], kind: Kind, others: Mapping[str, Corpus] | None = None) -> ImageReport:
    """Check labelled images: duplicates, leaks, and contradicting, rare or missing labels.

    Args:
        corpora: the training data.
        kind: whether an image has one label, any number of labels, or a number.
        others: validation and test images by name, searched for in the training images.
    """
    found = check_labels(corpora, kind, others)
    findings = tuple(replace(finding, sentence=reword_for_images(finding.sentence)) for finding in found.findings)
    values = {one.name: getattr(found, one.name) for one in fields(found)}
    return ImageReport(**{**values, "findings": findings})


def reword_for_images(sentence: str) -> str:
    """Reword a sentence about texts for images."""

    def image(found: re.Match[str]) -> str:
        return ("an " if found[1] else "") + ("I" if found[2] == "T" else "i") + "mage" + found[3]

    return _TEXT.sub(image, sentence.replace(_SWAPPED, _COLUMN))
