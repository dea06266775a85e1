import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
import torch

import regard
import regard.nn

ROOT = Path(__file__).parents[2]


def test_public_names_are_sorted_and_can_be_had() -> None:
    assert sorted(regard.__all__) == regard.__all__
    assert dir(regard) == regard.__all__
    for name in regard.__all__:
        assert getattr(regard, name) is not None


def test_the_probe_is_a_module_that_is_loaded_when_it_is_used() -> None:
    probe = importlib.import_module("regard.probe")
    assert regard.probe is probe
    assert sorted(probe.__all__) == probe.__all__
    for name in probe.__all__:
        assert getattr(probe, name) is getattr(importlib.import_module("regard.library.probe"), name)
    inner = vars(importlib.import_module("regard.library.probe"))
    own = {name for name, one in inner.items() if getattr(one, "__module__", "") == "regard.library.probe"}
    assert {name for name in own if not name.startswith("_")} <= set(probe.__all__)


def test_regard_nn_has_all_parts() -> None:
    """Every public module of torch that is defined in it, and what parts are given."""
    names, found = set(regard.nn.__all__), set[str]()
    for inner in pkgutil.walk_packages(regard.nn.__path__, "regard.nn."):
        module = importlib.import_module(inner.name)
        for name, one in vars(module).items():
            if inspect.isclass(one) and one.__module__ == inner.name and issubclass(one, torch.nn.Module):
                found |= set() if name.startswith("_") else {name}
    assert names - found == {"DIMENSIONS", "KVCache", "Layout", "Scoring", "Sequences", "WordRows"}
    assert found <= names
    for name in names:
        assert hasattr(regard.nn, name)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'trane'"):
        _ = regard.trane


def test_version_is_told_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert regard.__version__ == project["version"] == newest.group(1)
