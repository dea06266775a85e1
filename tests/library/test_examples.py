"""The example program and the Python lines of the documents run, and use what exists."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import regard
from tests.scripts import load_script
from tests.tasks.small_tasks import EVERY, PIXELS, SOURCE, TARGET, TEXTS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "library.py"
SMALL = {"d_model": 12, "d_ff": 20, "heads": 3, "encoder_layers": 1, "decoder_layers": 1}


def blocks(document: str) -> list[str]:
    """The Python code of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_script(EXAMPLE)


def given(name: str) -> str:
    return ",".join(map(str, PIXELS)) if name == "viewer" else TEXTS.get(name, SOURCE)


@pytest.mark.one_of(12, minutes=0.1)
@pytest.mark.parametrize("name", EVERY)
def test_the_example_runs_with_every_model(
    name: str, example: ModuleType, folder: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert example.main([str(folder(name)), given(name), str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert repr(regard.load(folder(name), device="cpu")) in told
    assert (tmp_path / "head.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "<!doctype html>" in (tmp_path / "attention.html").read_text(encoding="utf-8")


def test_the_example_names_errors(example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main([str(tmp_path / "none"), "text"]) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err
    assert example.main([]) == 2


def test_the_example_uses_every_public_name() -> None:
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {f"regard.{name}" for name in regard.__all__} <= used
    assert "cast" not in EXAMPLE.read_text(encoding="utf-8")
    assert "type: ignore" not in EXAMPLE.read_text(encoding="utf-8")


def test_the_lines_of_the_front_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = regard.train

    def quick(**options: Any) -> regard.Model:
        recipe = {"model": SMALL, "training": {"steps": 2, "tokens": 256}}
        assert options.pop("minutes") > 0
        return train(**options, recipe=recipe, quiet=True, threads=1, device="cpu", despite_check=True)

    monkeypatch.setattr("regard.library.models.train", quick)
    monkeypatch.chdir(tmp_path)
    for ending, text in (("en", SOURCE), ("de", TARGET)):
        Path(f"train.{ending}").write_text("".join(f"{n} {text}\n" for n in range(40)), encoding="utf-8")
    (code,) = blocks("README.md")
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["attention"].weights.size


def test_the_lines_of_the_document_run(
    folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"regard": regard, "translator": regard.Translator.load(folder("translator"), "cpu")}
    for code in blocks("docs/python.md"):
        exec(compile(code, "python.md", "exec"), names)
    assert names["found"].against
    assert Path("attention.svg").exists()


def test_the_document_names_every_class() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for name in regard.__all__:
        assert re.search(rf"\b{name}\b", text), name


def test_the_example_fits_and_serves(
    example: ModuleType,
    folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert example.main(["--fit"]) == 0
    assert abs(float(capsys.readouterr().out.split()[-1]) - 2) < 0.1
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", asked.append)
    assert example.main(["--page", str(folder("classifier"))]) == 0
    assert "http://127.0.0.1:" in asked[0]
