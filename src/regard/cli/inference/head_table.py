"""``regard attend --table``: what each head does over many texts or images, in the terminal or as JSON lines."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.io.input_texts import STDIN, InputTexts
from regard.cli.io.load_model import open_model
from regard.cli.io.terminal import progress, result, result_json, say, say_invalid_lines
from regard.system.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.inspection.pictures.head_table import HeadTable
    from regard.tasks.images.classifier import ImageClassification
    from regard.tasks.protocols import Task

PAIRS = (".tsv", ".tab", ".jsonl", ".ndjson", ".json")
"""Endings of files that hold texts and what is written to them."""
MOST = 10_000
"""Most texts or images that are read: the intervals hardly change with more."""


def show_head_table(folder: Path, file: Path, json: bool, device: str | None, threads: int | None) -> int:
    """Print what each head does over the texts or images of a file.

    Args:
        folder: the model folder.
        file: texts, a line each; of a model that writes texts also pairs; of one of images CSV, TSV or ``.npz``.
        json: one JSON object a head instead of a table.
        device, threads: what the model runs on.

    Raises:
        UsageError: the file is not there, or not of this model.
        RegardError: it has no text or image, or the model has no attention.
    """
    from regard.tasks.kinds import reads_image

    given = InputTexts((), file)
    task = open_model(folder, device, threads, "attend")
    if reads_image(task):
        found = _table_of_images(task, file)
    else:
        found = _table(task, *_texts(task, file, given), given.name)
    if json:
        for head in found:
            result_json(head.to_dict())
    else:
        result(found.table())
    return 0


def _table_of_images(task: ImageClassification, file: Path) -> HeadTable:
    from regard.library.heads import head_table
    from regard.tasks.images.classifier import some_images

    if file == STDIN:
        raise UsageError("images are read from a file: CSV, TSV or .npz", "--input")
    images = [pixels for pixels, _ in _first(some_images(task, file, MOST + 1), str(file), "images")]
    with progress(0, 0.0) as shown:
        return head_table(task, images, done=lambda: shown.add(1, (shown.done + 1) / len(images)))


def _table(task: Task, sources: list[str], targets: list[str] | None, name: str) -> HeadTable:
    from regard.library.heads import head_table

    kept = [number for number, text in enumerate(sources) if text.strip() and (not targets or targets[number].strip())]
    if not kept:
        raise RegardError("there is no text", name)
    if len(kept) < len(sources):
        say(f"{name}: {len(sources) - len(kept):,} empty lines are left out")
    written = targets and [targets[number] for number in kept]
    with progress(0, 0.0) as shown:
        return head_table(
            task,
            [sources[number] for number in kept],
            written or None,
            done=lambda: shown.add(1, (shown.done + 1) / len(kept)),
        )


def _texts(task: Task, file: Path, given: InputTexts) -> tuple[list[str], list[str] | None]:
    """The texts of a file, and what is written to them where it holds that."""
    from regard.data.corpora.corpus import plain_name
    from regard.text.lines import InvalidLines

    if file != STDIN and plain_name(file).endswith(PAIRS):
        if task.info.writes != "text":
            raise UsageError("holds pairs, but this model writes no text; give a text a line", str(file))
        from regard.data.corpora.pairs import open_pairs

        corpus = open_pairs(file)
        try:
            pairs = _first(corpus.examples(), given.name)
        except RegardError as error:  # this command has no --columns
            message = error.message.partition(": name two by")[0].partition("; say which")[0]
            raise RegardError(f"{message}; pairs are the keys source and target, or two columns", error.where) from None
        for notes in corpus.notes:
            say_invalid_lines(str(file), notes)
        return [pair.source for pair in pairs], [pair.target for pair in pairs]
    notes = InvalidLines()
    lines = _first(given.lines(notes), given.name)
    say_invalid_lines(given.name, notes)
    return lines, None


def _first(values: Any, name: str, of: str = "texts") -> list[Any]:
    found = list(islice(values, MOST + 1))
    if len(found) > MOST:
        say(f"{name}: the first {MOST:,} {of} are read")
    return found[:MOST]
