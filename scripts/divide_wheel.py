"""Divides the wheel of a checkout: ``regard-run`` runs models; ``regard`` needs it and torch, and has all else.

    python scripts/divide_wheel.py FOLDER/regard-0.1.0-….whl OUTPUT

So nothing lies twice: who installs both, in either order, has the whole toolkit, and an upgrade moves both.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from regard.system.installation import LEFT_OUT

WHOLE, RUN = "regard", "regard-run"
SHOWN = ("page", "shipped", "questions", "pictures", "folders")
WHOLE_ONLY = (*(f"regard/inspection/{folder}/" for folder in SHOWN), "regard/runs/demo/")
"""Folders that only ``regard`` has, as it has every module that begins with torch: what uses them computes by torch."""
TORCH = re.compile(rb"^(import|from) torch\b", re.MULTILINE)
SUMMARY = {
    RUN: "Runs attention models that Regard trained: without torch, and without training.",
    WHOLE: "Trains, runs and shows attention models: the Transformer of 2017 and its relatives.",
}


def divide(wheel: Path, output: Path) -> list[Path]:
    """Writes both wheels; returns their paths."""
    _, version, tags = wheel.name.removesuffix(".whl").split("-", 2)
    with ZipFile(wheel) as given:
        files = {name: given.read(name) for name in given.namelist() if not name.endswith("/")}
    info = f"{WHOLE}-{version}.dist-info/"
    own = {name.removeprefix(info): files.pop(name) for name in list(files) if name.startswith(info)}
    metadata = own.pop("METADATA").decode("utf-8")
    del own["RECORD"]
    whole = {name: content for name, content in own.items() if name != "entry_points.txt"}
    whole["WHEEL"] = plain(own["WHEEL"].decode("ascii")).encode("ascii")
    added = {name: files.pop(name) for name in list(files) if only_whole(name, files[name])}
    parts = {
        f"{RUN.replace('-', '_')}-{version}-{tags}.whl": (files, own | {"METADATA": lean(metadata).encode()}),
        f"{WHOLE}-{version}-py3-none-any.whl": (added, whole | {"METADATA": meta(metadata, version).encode()}),
    }
    output.mkdir(parents=True, exist_ok=True)
    return [write(output / name, *contents) for name, contents in parts.items()]


def only_whole(name: str, content: bytes) -> bool:
    """Whether a file is of no use without torch."""
    return name.startswith(WHOLE_ONLY) or (name.endswith(".py") and TORCH.search(content) is not None)


def lean(metadata: str) -> str:
    """The metadata of ``regard-run``: another name, and not what is left out."""
    lines = [line.replace(f"{WHOLE}[", f"{RUN}[") for line in metadata.split("\n") if not left_out(line)]
    return "\n".join(described(lines, RUN))


def meta(metadata: str, version: str) -> str:
    """The metadata of ``regard``: it needs ``regard-run`` of its version, what that lacks, and what its extras name."""
    lines = metadata.split("\n")
    needed = [line for line in lines if line.startswith("Requires-Dist:") and (left_out(line) or "extra ==" in line)]
    kept = [line for line in lines if not line.startswith("Requires-Dist:") or line in needed]
    first = next(place for place, line in enumerate(kept) if line.startswith("Requires-Dist:"))
    return "\n".join(described([*kept[:first], f"Requires-Dist: {RUN}=={version}", *kept[first:]], WHOLE))


def left_out(line: str) -> bool:
    """Whether a line of metadata requires what ``regard-run`` lacks, not only in an extra."""
    found = re.match(r"Requires-Dist: ([\w.-]+)", line)
    return found is not None and found[1].replace("-", "_") in LEFT_OUT and "extra ==" not in line


def described(lines: list[str], name: str) -> list[str]:
    """The lines with a distribution's name and summary."""
    heads = {"Name:": f"Name: {name}", "Summary:": f"Summary: {SUMMARY[name]}"}
    return [heads.get(line.split(" ", 1)[0], line) for line in lines]


def plain(wheel: str) -> str:
    """The file WHEEL of a distribution without native code: one tag, for every machine.

    Its files still go where those of ``regard-run`` go, which some systems keep apart from pure Python.
    """
    lines = [line for line in wheel.strip().split("\n") if not line.startswith(("Tag:", "Root-Is-Purelib:"))]
    return "\n".join([*lines, "Root-Is-Purelib: false", "Tag: py3-none-any", ""])


def write(path: Path, files: dict[str, bytes], own: dict[str, bytes]) -> Path:
    """Writes a wheel: its files, its metadata, and the record of both."""
    name, version = path.name.split("-")[:2]
    info = f"{name}-{version}.dist-info/"
    contents = files | {info + each: content for each, content in own.items()}
    record = [f"{each},sha256={digest(content)},{len(content)}" for each, content in contents.items()]
    contents[f"{info}RECORD"] = "\n".join([*record, f"{info}RECORD,,", ""]).encode()
    with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
        for each, content in contents.items():
            wheel.writestr(each, content)
    return path


def digest(content: bytes) -> str:
    """The sha256 as a record has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode("ascii")


if __name__ == "__main__":
    for made in divide(Path(sys.argv[1]), Path(sys.argv[2])):
        print(made)
