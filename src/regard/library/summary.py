"""The description of a model for Python and notebooks: what it is, its sizes, and the scores on its card."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from regard.inspection.questions.export import describe_changes
from regard.inspection.requests import AblationRequest, Request
from regard.models.presets import count_parameters
from regard.system import disk
from regard.system.errors import RegardError
from regard.tasks.protocols import Task
from regard.tasks.training.model_writer import CARD, SCORES, size_line
from regard.text.languages import UNKNOWN

LABELS = 12
"""Most labels named."""
_SECTION = re.compile(rf"^## {SCORES}\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SIGNATURE = re.compile(r" \([^()]*`[^`]*`[^()]*\)|[.:]$")


@dataclass(frozen=True)
class Summary:
    """The description of a model.

    Args:
        title: the task, as in "A translator"; ``languages``: codes, of a translator.
        sizes: family, parameters, layers.
        labels: of a classifier or tagger.
        scores: lines of its card on the validation data; empty if none are known.
        changes: its ablations as sentences; empty if there are none.
        folder: its name.
    """

    title: str
    languages: str
    sizes: str
    labels: tuple[str, ...]
    scores: tuple[str, ...]
    changes: str
    folder: str

    @classmethod
    def of(cls, task: Task, folder: Path, changes: AblationRequest) -> Summary:
        """The description of a loaded task and its folder."""
        section, text = task.recipe.model, task.recipe.text
        known = task.info.learns_from == "pairs" and UNKNOWN not in (text.source_language, text.target_language)
        count = count_parameters(task.model)
        return cls(
            task.info.noun.capitalize(),
            f"{text.source_language} → {text.target_language}" if known else "",
            f"{section.info.noun}, {count:,} parameters, {size_line(section)}",
            tuple(getattr(task.assets, "labels", ())),
            card_scores(folder),
            describe_changes(Request(changes=changes)),
            folder.name,
        )

    @property
    def line(self) -> str:
        """All in one line."""
        scores = "; ".join(_SIGNATURE.sub("", score) for score in self.scores)
        parts = [self.sizes, self._labels and f"labels {self._labels}", scores, self.changes.rstrip(".").lower()]
        head = f"{self.folder!r} {self.languages}".strip()
        return f"{head}: {'; '.join(part for part in parts if part)}"

    @property
    def html(self) -> str:
        """A small table."""
        title = f"{self.title}: {self.languages}" if self.languages else self.title
        named = {"Folder": self.folder, "Sizes": self.sizes, "Labels": self._labels}
        rows = [(name, escape(value)) for name, value in named.items() if value]
        rows += [("Scores", "<br>".join(map(escape, self.scores)))] if self.scores else []
        rows += [("Changes", escape(self.changes))] if self.changes else []
        cells = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{value}</td></tr>" for name, value in rows)
        return f"<table><caption>{escape(title)}</caption>{cells}</table>"

    @property
    def _labels(self) -> str:
        more = len(self.labels) - LABELS
        return ", ".join([*self.labels[:LABELS], *([f"… {more:,} more"] if more > 0 else [])])


def card_scores(folder: Path) -> tuple[str, ...]:
    """The lines of a model's card on its scores; none if it has no card that can be read."""
    try:
        card = disk.content(folder / CARD, kind="card").decode("utf-8", "replace")
    except (OSError, RegardError):
        return ()
    found = _SECTION.search(card)
    return tuple(line.removeprefix("* ") for line in found[1].splitlines() if line.strip()) if found else ()
