"""The import contract, and which modules never load torch."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from regard.system import kernels
from regard.tasks import MODELS
from tests.house.trees import tree

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
TORCH_FREE = ["config", "system", "text", "data", "decoding", "inspection", "cli", "__init__.py"]
if kernels.available():  # the engine is of the compiled kernels
    TORCH_FREE += ["engine"]


def modules(part: str) -> list[Path]:
    path = SOURCE / "regard" / part
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def test_import_contract(monkeypatch) -> None:
    """The table of layers in pyproject.toml, as Import Linter reads it."""
    from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)  # it would turn off the loggers that are there
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS


IMPORTED_AS = {"scikit_learn": "sklearn", "python_multipart": "starlette"}
"""Packages that are imported by another name, or by another package."""


def test_every_extra_is_used() -> None:
    """What an extra installs is imported, or asked for by name; ``all`` is all but what tests and documents need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        name: lines for name, lines in project["optional-dependencies"].items() if name not in ("test", "docs", "all")
    }
    assert project["optional-dependencies"]["all"] == [f"regard[{','.join(extras)}]"]
    used = {word for path in modules(".") for word in named(tree(path))}
    for lines in extras.values():
        names = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in lines}
        assert {IMPORTED_AS.get(name, name) for name in names} <= used


def named(tree: ast.AST) -> set[str]:
    """Top packages imported anywhere in a module, and those looked for by ``find_spec("name")``."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "find_spec":
            found |= {given.value for given in node.args if isinstance(given, ast.Constant)}
    return found


def test_importing_every_torch_free_module_loads_no_torch() -> None:
    """Nor do the modules of the classes that use a model."""
    names = [name.partition(":")[0] for name in MODELS.values()]
    names += [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for part in TORCH_FREE
        for path in modules(part)
    ]
    code = "import importlib, sys\n"
    code += f"for name in {names!r}:\n    importlib.import_module(name)\n    assert 'torch' not in sys.modules, name"
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
