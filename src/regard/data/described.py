"""The index of prepared data as the two kinds of it need it: every value of the right type, or it is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from regard import disk
from regard.data.folder import INDEX, verified
from regard.errors import Damaged

Count = Annotated[int, Field(ge=0, strict=True)]


class Side(BaseModel):
    """Of the files of one side of a corpus; see :class:`~regard.data.shards.SideWriter`."""

    sentences: Count
    tokens: Count
    longest: Count
    type: Literal["<u2", "<u4"]
    begins: list[Count]
    ids: list[str]
    offsets: str


class Table(BaseModel):
    """Of the segmentations of words; see :class:`~regard.data.segmented.WordTable`."""

    rows: Side
    words: str


class LeftOut(BaseModel):
    """How many examples were left out, and where some stand."""

    counts: dict[str, Count]
    examples: dict[str, list[str]]


class Both(BaseModel):
    """What every index says."""

    fingerprint: str
    sides: dict[str, Side]
    left_out: LeftOut
    mended: list[str]


class OfPairs(Both):
    """Of sentence pairs."""

    sizes: list[Count]
    tables: dict[str, Table]
    seed: int
    max_tokens: int


class OfExamples(Both):
    """Of texts or images with what is said of them."""

    own: dict[str, Any]
    wholes: dict[str, str] = {}


def described(folder: Path, kind: type[OfPairs] | type[OfExamples], sides: tuple[str, ...]) -> dict[str, Any]:
    """The index of a folder, every file verified and every entry of the kind.

    Args:
        folder: of prepared data.
        kind: what its index must say.
        sides: names that it must have.

    Raises:
        Damaged: it is not as it was written.
        RegardError: a newer Regard wrote it.
    """
    index = verified(folder)
    try:
        kind.model_validate(index)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Damaged(f"is damaged: {place:.80}: {first['msg']:.80}", str(folder / INDEX)) from None
    named = [index["sides"].get(side) for side in sides] + [table["rows"] for table in index.get("tables", {}).values()]
    files = [name for side in named if side for name in (*side["ids"], side["offsets"])]
    files += [table["words"] for table in index.get("tables", {}).values()] + [*index.get("wholes", {}).values()]
    if None in named or not all(map(disk.is_plain, files)) or not set(files) <= index["files"].keys():
        raise Damaged("is damaged: it lacks a side of the data, or the sha256 of a file", str(folder / INDEX))
    return index
