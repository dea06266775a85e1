"""A folder that is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError


def refuse_full(output: Path) -> None:
    """Raise a RegardError for what holds something, or is no folder."""
    if output.is_symlink() and not output.exists():
        raise RegardError("is a link to nothing; name a new folder", str(output))
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise RegardError("holds something already; name a new folder", str(output))


@contextmanager
def whole(output: Path) -> Iterator[Path]:
    """A folder beside ``output`` to be filled, which takes its place at the end; whatever fails, nothing is left.

    Raises:
        RegardError: ``output`` holds something, or it cannot be written.
    """
    refuse_full(output)
    place = output.resolve()
    fresh = place.with_name(f".{place.name}.partial-{uuid.uuid4().hex}")
    try:
        fresh.mkdir(parents=True)
        yield fresh
        if place.exists():  # empty; perhaps somebody stands in it, so it stays the same one
            for path in sorted(fresh.iterdir()):
                os.replace(path, place / path.name)
        else:
            os.replace(fresh, place)
    except OSError as error:
        why = error.strerror or error
        raise RegardError(f"cannot be written ({why}); nothing was left there", str(output)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
