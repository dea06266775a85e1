"""One wheel becomes two: what works without torch in one, and the rest, torch and that one in the other."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.scripts import load_script

METADATA = """\
Metadata-Version: 2.4
Name: regard
Version: 1.2
Summary: something
Requires-Dist: torch>=2.11
Requires-Dist: torchless>=1
Requires-Dist: numpy>=2.0
Requires-Dist: tensorboard; extra == "track"
Requires-Dist: regard[track]; extra == "all"

# Regard
"""
FILES = {
    "regard/__init__.py": "",
    "regard/system/kernels/_native.so": "binary",
    "regard/cli/train.py": "def train() -> None:\n    import torch\n\n\nimport torchless\n",
    "regard/nn/ops.py": '"""Products."""\n\nimport math\n\nfrom torch import nn\n',
    "regard/inspection/page/index.html": "<html>",
    "regard/inspection/shipped/transformer/walk.json": "{}",
    "regard-1.2.dist-info/METADATA": METADATA,
    "regard-1.2.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n",
    "regard-1.2.dist-info/entry_points.txt": "[console_scripts]\nregard = regard.__main__:main\n",
    "regard-1.2.dist-info/RECORD": "",
}


@pytest.fixture
def wheels(tmp_path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The files of regard-run and of regard."""
    given = tmp_path / "regard-1.2-cp311-cp311-linux_x86_64.whl"
    with ZipFile(given, "w") as wheel:
        for name, content in FILES.items():
            wheel.writestr(name, content)
    paths = load_script("scripts/divide_wheel.py").divide(given, tmp_path / "out")
    assert [path.name for path in paths] == [
        "regard_run-1.2-cp311-cp311-linux_x86_64.whl",
        "regard-1.2-py3-none-any.whl",
    ]
    contents = []
    for path in paths:
        with ZipFile(path) as wheel:
            contents.append({name: wheel.read(name).decode() for name in wheel.namelist()})
    return contents[0], contents[1]


def test_no_file_lies_in_both(wheels: tuple[dict[str, str], dict[str, str]]) -> None:
    run, whole = wheels
    assert not run.keys() & whole.keys()
    assert {name for name in run if name.startswith("regard/")} == {
        "regard/__init__.py",
        "regard/cli/train.py",
        "regard/system/kernels/_native.so",
    }
    assert [name for name in whole if not name.startswith("regard-1.2.dist-info/")] == [
        "regard/nn/ops.py",
        "regard/inspection/page/index.html",
        "regard/inspection/shipped/transformer/walk.json",
    ]
    assert ("entry_points.txt" in str(run.keys()), "entry_points.txt" in str(whole.keys())) == (True, False)


def test_what_each_needs(wheels: tuple[dict[str, str], dict[str, str]]) -> None:
    run, whole = (
        [line.partition(": ")[2] for line in files[f"{name}-1.2.dist-info/METADATA"].split("\n") if "Requires" in line]
        for files, name in zip(wheels, ("regard_run", "regard"), strict=True)
    )
    extra = 'tensorboard; extra == "track"'
    assert run == ["torchless>=1", "numpy>=2.0", extra, 'regard-run[track]; extra == "all"']
    assert whole == ["regard-run==1.2", "torch>=2.11", extra, 'regard[track]; extra == "all"']


def test_every_file_is_recorded(wheels: tuple[dict[str, str], dict[str, str]]) -> None:
    for files, name in zip(wheels, ("regard_run", "regard"), strict=True):
        recorded = [line.split(",")[0] for line in files[f"{name}-1.2.dist-info/RECORD"].strip().split("\n")]
        assert sorted(recorded) == sorted(files)
