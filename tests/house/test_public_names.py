import importlib
import re
import tomllib
from pathlib import Path

import pytest

import regard

ROOT = Path(__file__).parents[2]


def test_public_names_are_sorted_and_can_be_had() -> None:
    assert sorted(regard.__all__) == regard.__all__
    assert dir(regard) == regard.__all__
    for name in regard.__all__:
        assert getattr(regard, name) is not None


def test_public_functions_are_those_of_their_modules() -> None:
    for name, module in regard._LAZY.items():
        if name == "explore":  # a package that answers calls
            assert callable(regard.explore)
            continue
        assert getattr(regard, name) is (
            importlib.import_module(module)
            if module.endswith(f".{name}")
            else getattr(importlib.import_module(module), name)
        )


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'trane'"):
        _ = regard.trane


def test_version_is_told_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert regard.__version__ == project["version"] == newest.group(1)
