"""What stands around the texts of a translator of one language each way, where it is not just ``</s>`` behind them.

OpenNMT's models read a source as it is; some of its translations begin with a token that says their language.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import RegardError

FRAME = "frame.json"
"""The file of a model folder; folders of models of our own have none."""


@dataclass(frozen=True)
class TextFrame:
    """The tokens around texts.

    Args:
        before: before what is read.
        ended: whether ``</s>`` ends what is read.
        prefix: what a translation begins with; no part of its text.
    """

    before: tuple[int, ...] = ()
    ended: bool = True
    prefix: tuple[int, ...] = ()

    @property
    def content(self) -> bytes:
        """The file of a model folder."""
        return (json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode()


PLAIN = TextFrame()


def read_frame(folder: Path) -> TextFrame:
    """The frame of a model folder.

    Raises:
        RegardError: its file is damaged, or a newer Regard wrote it.
    """
    path = folder / FRAME
    if not path.exists():
        return PLAIN
    values: Any = disk.json_of(path)
    try:
        checksum.refuse_newer(values, path)
        found = TextFrame(tuple(values["before"]), values["ended"], tuple(values["prefix"]))
        sound = type(found.ended) is bool and all(type(id) is int and id >= 0 for id in found.before + found.prefix)
    except (AttributeError, KeyError, TypeError):
        sound = False
    if not sound:
        raise RegardError("is damaged: the tokens around texts were expected", str(path))
    return found
