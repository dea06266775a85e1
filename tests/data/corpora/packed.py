"""Files of text, packed as their ending says."""

import gzip
import lzma
from pathlib import Path

import zstandard


def write(path: Path, text: str) -> Path:
    """A file of this text."""
    raw = text.encode()
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}.get(path.suffix)
    path.write_bytes(pack(raw) if pack else raw)
    return path
