"""Import: a package of Argos Translate, a zip of a CTranslate2 folder and a SentencePiece model.

Of the zip a few files are copied under names of our own into a folder that is removed again; nothing else is unpacked.
"""

from __future__ import annotations

import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from regard.runs.convert.ctranslate2_import import SHARED, SOURCE, TARGET, read_ctranslate2
from regard.runs.convert.hub import CONFIG, OF_CTRANSLATE2, TEXT, Fields, format_value
from regard.runs.convert.hub_import import ImportedModel
from regard.system import disk
from regard.system.errors import RegardError

ENDING, METADATA, PIECES = ".argosmodel", "metadata.json", "sentencepiece.model"
VOCABULARIES = [f"{side}.{end}" for side in (SHARED, SOURCE, TARGET) for end in ("json", "txt")]
KEPT = {METADATA, PIECES, *(f"model/{name}" for name in (OF_CTRANSLATE2, CONFIG, *VOCABULARIES))}
DENSEST, FREE = 32, 1 << 20
"""Times that a file may be larger than in the zip, and the bytes it may have in any case; weights hardly shrink."""
FAULTS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, KeyError, RuntimeError)


def is_argos(path: Path) -> bool:
    """Whether a path is a package, or the folder that Argos Translate unpacks one into."""
    return path.suffix == ENDING or ((path / METADATA).exists() and (path / "model" / OF_CTRANSLATE2).exists())


def read_argos(path: Path, wanted: str | None = None) -> ImportedModel:
    """The model of a package, or of its unpacked folder.

    Raises:
        UsageError: another task than translation is wanted.
        RegardError: it is damaged, has files outside of itself, unpacks to far more than it has, or cuts texts by BPE.
    """
    if path.is_dir():
        return _of_folder(path, path, wanted)
    with _unpack(path) as folder:
        return replace(_of_folder(folder, path, wanted), file="")


def _of_folder(folder: Path, path: Path, wanted: str | None) -> ImportedModel:
    said = Fields(Fields.of(folder / METADATA).values, f"{path}/{METADATA}")
    if not (folder / PIECES).exists():
        raise RegardError(f"has no {PIECES}; packages of Moses and BPE (bpe.model) are not supported", str(path))
    text = {"source_language": said.language("from_code"), "target_language": said.language("to_code")}
    prefix = said.parse("target_prefix", TEXT, "")
    found = read_ctranslate2(folder / "model", wanted, text, prefix, folder / PIECES)
    return replace(found, layout=f"a package of Argos Translate in {found.layout}", file=f"model/{found.file}")


@contextmanager
def _unpack(path: Path) -> Iterator[Path]:
    """A folder with the files of a package that are read; errors about them name the package."""
    disk.refuse_irregular(path, "package")
    with TemporaryDirectory() as place:
        try:
            with zipfile.ZipFile(path) as package:
                for name, entry in _entries(package).items():
                    target = Path(place, name)
                    target.parent.mkdir(exist_ok=True)
                    with package.open(entry) as held, target.open("wb") as copy:
                        shutil.copyfileobj(held, copy)
        except FAULTS as error:
            raise RegardError(f"is damaged, or no zip: {error}", str(path)) from None
        try:
            yield Path(place)
        except RegardError as error:
            raise type(error)(error.message, (error.where or "").replace(place, str(path))) from None


def _entries(package: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files that are read, by their names beside the metadata."""
    entries = [(entry, PurePosixPath(entry.filename.replace("\\", "/"))) for entry in package.infolist()]
    where = str(package.filename)
    for entry, path in entries:
        if ".." in path.parts or path.is_absolute():
            raise RegardError(f"holds {format_value(entry.filename)}, which lies outside of it", where)
    root = min(
        (path.parent for _, path in entries if path.name == METADATA), key=lambda it: len(it.parts), default=None
    )
    found: dict[str, zipfile.ZipInfo] = {}
    for entry, path in entries:
        name = str(path.relative_to(root)) if root is not None and path.is_relative_to(root) else ""
        if name not in KEPT or entry.is_dir():
            continue
        if name in found:
            raise RegardError(f"holds {name} twice", where)
        if entry.file_size > max(FREE, DENSEST * entry.compress_size):
            times = f"more than {DENSEST} times as large as in the zip"
            raise RegardError(f"holds a {name} that is {times} ({entry.file_size:,} bytes); it is not unpacked", where)
        found[name] = entry
    if METADATA not in found:
        raise RegardError(f"has no {METADATA}; is it a package of Argos Translate?", where)
    return found
