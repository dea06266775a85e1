"""Files of text, packed as their ending says."""

import gzip
import lzma
from functools import partial
from pathlib import Path

import zstandard

PACKED = {
    "": bytes,
    ".gz": partial(gzip.compress, compresslevel=1),
    ".xz": partial(lzma.compress, preset=0),
    ".zst": zstandard.compress,
}
"""Ending to what packs so."""


def write(path: Path, text: str) -> Path:
    """A file of this text."""
    path.write_bytes(PACKED.get(path.suffix, bytes)(text.encode()))
    return path
