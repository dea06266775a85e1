"""Validation of imported label names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from regard.data.corpora.labelled import join_labels
from regard.system.errors import RegardError
from regard.text.tokenizers.byte_pieces import replace_surrogates

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NO_SPAN = re.compile(r"[BIMLEUS]-")
"""A tag that begins as one of a span and does not say of what."""


def refuse_labels(task: str, kind: str, labels: Sequence[str], where: str) -> None:
    """Refuse names that hardly any corpus gives training: they break lines and columns, or cannot be told apart.

    Args:
        task: what the model is for.
        kind: of a classification, ``multi`` where a text may have several.
        labels: the names.
        where: the file that holds them.

    Raises:
        RegardError: names the first such label, and what to do.
    """
    if found := odd_label(task, kind, labels):
        label, wrong = found
        raise RegardError(f"the label {label} of id2label {wrong}; write another there", where)


def odd_label(task: str, kind: str, labels: Sequence[str]) -> tuple[str, str] | None:
    """The first label that :func:`refuse_labels` refuses, as it is shown, and what is wrong with it; else nothing."""
    for label in labels:
        wrong = _wrong(label)
        if not wrong and task == "tagging" and _NO_SPAN.fullmatch(label):
            wrong = "is a tag of a span without a name after the hyphen"
        if not wrong and task != "tagging" and kind == "multi":
            wrong = _not_one_of_several(label)
        if wrong:
            return json.dumps(label)[:60], wrong
    return None


def _wrong(label: str) -> str:
    """The problem with a label, if any."""
    if not label.strip():
        return "is empty"
    if _CONTROL.search(label):
        return "holds a tab, a line break or another control character"
    if label != label.strip():
        return "begins or ends with a blank"
    return "" if label == replace_surrogates(label) else "holds half a character (a surrogate)"


def _not_one_of_several(label: str) -> str:
    try:
        join_labels([label])
    except ValueError:
        return "holds '|', the sign between the labels of a text"
    return ""
