"""A side of a corpus in memory, and in shards."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.prepare.shards import Shards, SideWriter

Ids = NDArray[np.int64]


def shards(
    folder: Path, sentences: Sequence[Ids], pieces: int = 1000, name: str = "text", file_tokens: int = 1 << 20
) -> Shards:
    """Sentences written to a folder."""
    writer = SideWriter(folder, name, pieces, file_tokens)
    writer.add(sentences)
    return Shards(folder, writer.close()[0])
