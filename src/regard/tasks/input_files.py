"""Input files of a task: opened as corpora; refused if they cannot be read more than once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.text.pretrained import Pretrained

Files = Sequence[Path | str]
Opened = TypeVar("Opened")


@dataclass(frozen=True)
class InputFiles:
    """The input files of a training.

    Args:
        train: training files of any task but translation.
        valid: validation file, if not split off.
        columns: columns or keys of ``train``, or of ``pairs``.
        begun: a model to initialise from.
        source, target: training files of a translator, line by line each other's translation.
        pairs: files that hold both sides.
        valid_source, valid_target: validation files of a translator.
    """

    train: Files = ()
    valid: Path | str | None = None
    columns: str | None = None
    begun: Pretrained | None = None
    source: Files = ()
    target: Files = ()
    pairs: Files = ()
    valid_source: Path | str | None = None
    valid_target: Path | str | None = None

    def corpora(self, opened: Callable[[Path | str, str | None], Opened]) -> tuple[list[Opened], Opened | None]:
        """The corpora of the files, and that to validate on.

        Raises:
            UsageError: no file is given, or one is not there, or can be read only once.
        """
        files = [*self.train, *([self.valid] if self.valid is not None else [])]
        if not self.train:
            raise UsageError("nothing to learn from: give --train FILE")
        for path in map(Path, files):
            if not path.is_file():
                refuse_pipes([path])
                raise UsageError("is a folder; a file is needed" if path.exists() else "no such file", str(path))
        learned = [opened(path, self.columns) for path in self.train]
        return learned, opened(self.valid, self.columns) if self.valid is not None else None


def refuse_pipes(files: Files) -> None:
    """Name the first file that can be read only once; training reads its data several times.

    Raises:
        UsageError: it is a pipe, or a device.
    """
    for path in files:
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise UsageError("is a pipe or a device, but training reads more than once; give a file", str(path))
