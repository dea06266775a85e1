"""``provenance.json``: what a run was made of and by, for the model's card; nothing of it decides the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from regard.config import checksum
from regard.system import disk
from regard.system.errors import Damaged
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files

NAME = "provenance.json"
EARLIER = "an earlier start, of which nothing is known"
"""In place of the version that began a run before there was such a file."""


@dataclass(frozen=True)
class RunInputs:
    """What a person gave to a run.

    Args:
        command: a shell line that makes the same; it names files without their folders.
        files: the data, by the names shown.
        licence: of the data.
    """

    command: str = ""
    files: tuple[tuple[str, Path], ...] = ()
    licence: str | None = None


@dataclass(frozen=True)
class DataFile:
    """A data file, without its folder; ``size`` in bytes."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Provenance:
    """What a run was made of and by; of several starts every different value, in their order.

    Args:
        commands: as in :class:`RunInputs`.
        versions: of Regard and torch.
        processors: or graphics cards.
        files: the data, as it was at the first start.
        licence: of the data, as last named.
    """

    commands: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    processors: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    licence: str | None = None

    def data_lines(self) -> list[str]:
        """Card lines: the data files with their sha256, and the licence, if they are known."""
        lines = []
        if self.files:
            lines += ["", "| file | bytes | sha256 |", "| --- | --: | --- |"]
            lines += [f"| {_code(one.name)} | {one.size:,} | {one.sha256} |" for one in self.files]
        if self.licence:
            lines += ["", f"Licence of the data, as named for the training: {_text(self.licence)}."]
        return lines

    def training_lines(self, written: datetime | None = None, seconds: float | None = None) -> list[str]:
        """Card lines: when, for how long, on what and by what; of several starts all.

        Args:
            written: when the card is, in UTC.
            seconds: of training, validations included, those of steps that had to be made again not.
        """
        rows = [] if written is None else [("written", f"{written:%Y-%m-%d %H:%M:%S} UTC")]
        rows += [] if seconds is None else [("training", f"{seconds:,.1f} seconds, validations included")]
        rows += [("Regard", _text(one)) for one in self.versions]
        rows += [("processor", _text(one)) for one in self.processors]
        rows += [("command", _code(one)) for one in self.commands]
        return ["", "| made | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)] if rows else []


_PROVENANCE = TypeAdapter(Provenance)


def load(training: Path) -> Provenance | None:
    """What :func:`record` wrote into the private folder of a run; ``None``: an earlier Regard began it.

    Raises:
        Damaged: it differs from what was written.
        RegardError: a newer Regard wrote it.
    """
    path = training / NAME
    if not path.exists():
        return None
    values = checksum.load_json(disk.content(path, error=Damaged), path, required=True)
    try:
        return _PROVENANCE.validate_python({name: value for name, value in values.items() if name != "format"})
    except ValidationError as error:
        raise Damaged(f"is damaged: {error.errors()[0]['msg']:.80}", str(path)) from None


def record(
    training: Path,
    given: RunInputs,
    now: Provenance,
    before: Mapping[str, object],
    files: Files,
    told: Callable[[str], None] = lambda text: None,
) -> Provenance:
    """Add a start to what is known of a run, and keep it in its private folder.

    Args:
        training: the folder, locked by the caller.
        given: to this start; its files are read once, at the first start, for their sha256.
        now: the version and the processor of this start.
        before: the fields of ``resolved.toml``, where the run has begun; none: what is there was of no run.
        files: what changes the disk.
        told: called if what was known is damaged.
    """
    known = None
    if before:
        try:
            known = load(training)
        except Damaged as damage:
            told(f"{damage}; the card tells what this start knows")
    if known is None:
        measured = [(name, manifest.measure(path)) for name, path in given.files]
        data = tuple(DataFile(name, entry.size, entry.sha256) for name, entry in measured)
        processor = before.get("fingerprint.processor")
        known = Provenance((), (EARLIER,) if before else (), (processor,) if isinstance(processor, str) else (), data)
    made = Provenance(
        _union(known.commands, [given.command] if given.command else []),
        _union(known.versions, now.versions),
        _union(known.processors, now.processors),
        known.files,
        given.licence or known.licence,
    )
    raw, path = checksum.dump_json(asdict(made)), training / NAME
    if not disk.holds(path, raw):
        files.replace(path, [raw])
    return made


def _union(before: Iterable[str], now: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*before, *now]))


def _text(text: str) -> str:
    """A text on one line of Markdown, with no markup of its own."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in shown)


def _code(text: str) -> str:
    """A text as code in a table of Markdown."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text).replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"
