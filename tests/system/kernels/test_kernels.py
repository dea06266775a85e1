"""Which kernels there are, and how an instruction set is chosen."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.system import kernels
from regard.system.errors import UsageError
from regard.system.kernels.packing import PANEL


def said(**environment: str) -> str:
    """What a process with these variables says of the kernels."""
    code = """
from regard.system import kernels
if kernels.available():
    from regard.system.kernels import _native
    print(_native.in_use())
else:
    print("none")
"""
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or result.stderr.strip().splitlines()[-1]


def test_they_can_be_switched_off() -> None:
    assert said(REGARD_KERNELS="off") == "none"


def test_a_module_that_cannot_be_loaded_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regard.system.kernels._native", None)
    assert not kernels.available.__wrapped__()


@pytest.mark.usefixtures("instruction_set")
def test_the_variable_names_the_instruction_set(instruction_set: str) -> None:
    assert said(REGARD_KERNELS=instruction_set) == instruction_set
    assert said(REGARD_KERNELS="") == kernels.instruction_sets()[0]


@pytest.mark.usefixtures("instruction_set")
def test_an_unknown_instruction_set_is_refused() -> None:
    assert "is no instruction set of this machine; try" in said(REGARD_KERNELS="mmx")
    with pytest.raises(UsageError, match="'mmx' is no instruction set"):
        kernels.use("mmx")


@pytest.mark.usefixtures("instruction_set")
def test_every_machine_has_the_portable_one() -> None:
    assert kernels.instruction_sets()[-1] == "portable"


@pytest.mark.usefixtures("instruction_set")
def test_types_are_written_for_every_function() -> None:
    from regard.system.kernels import _native

    tree = ast.parse(Path(kernels.__file__).with_name("_native.pyi").read_text(encoding="utf-8"))
    written = {node.name: [a.arg for a in node.args.args] for node in tree.body if isinstance(node, ast.FunctionDef)}
    there = {name for name in dir(_native) if not name.startswith("_")}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert there == {*written, *classes, "PANEL", "KEPT"}
    assert _native.PANEL == PANEL
    for name, arguments in written.items():
        given = getattr(_native, name).__doc__.split("\n")[0]
        assert all(f"{argument}: " in given for argument in arguments), given
    for name, node in classes.items():
        kind = getattr(_native, name)
        methods = {one.name: [a.arg for a in one.args.args] for one in node.body if isinstance(one, ast.FunctionDef)}
        assert {one for one in dir(kind) if not one.startswith("_")} == methods.keys() - {"__init__"}
        for method, arguments in methods.items():
            assert all(f"{argument}: " in getattr(kind, method).__doc__ for argument in arguments[1:]), method
