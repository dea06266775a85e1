"""Where torch is not installed, every command that needs it says so in a sentence; the others work."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from regard.system import kernels
from regard.system.installation import not_installed
from tests.scripts import load_script
from tests.tasks.small_tasks import EVERY, put

NO_TORCH = not_installed("torch").message
LINES = ("A man sleeps.", "Two dogs run.")
PROGRAM = """
import contextlib, io, json, sys
sys.modules["torch"] = None
from regard.cli import main
found = {}
for name, argv in json.loads(sys.stdin.read()).items():
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
        out.flush()
        err.flush()
    found[name] = [code, *(one.buffer.getvalue().decode() for one in (out, err))]
print(json.dumps(found))
"""
NEEDING = ("train", "compare", "demo", "attend", "explore", "average", "import", "export", "recurrent")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """Code, stdout and stderr of commands run in a process that finds no torch."""
    base = tmp_path_factory.mktemp("without")
    model, recurrent = (str(put(base / name, EVERY[name]())) for name in ("translator", "recurrent"))
    (base / "a.en").write_text("\n".join(LINES * 20))
    pairs = ["--source", str(base / "a.en"), "--target", str(base / "a.en")]
    recipe = str(Path(__file__).resolve().parents[2] / "recipes" / "multi30k" / "captions.toml")
    new = ["--output", str(base / "new")]
    commands = {
        "train": ["train", *pairs, *new],
        "compare": ["compare", recipe, *pairs, "--minutes", "1", *new],
        "demo": ["demo", *new],
        "attend": ["attend", model, LINES[0]],
        "explore": ["explore", model, "--port", "0", "--no-browser"],
        "average": ["average", model, *new],
        "import": ["import", model, str(base / "new")],
        "export": ["export", model, str(base / "new")],
        "recurrent": ["translate", recurrent, *LINES],
        "translate": ["translate", model, *LINES],
        "evaluate": ["evaluate", model, "--source", str(base / "a.en"), "--reference", str(base / "a.en")],
        "align": ["align", model, "--input", str(base / "a.en"), "--target", str(base / "a.en")],
        "guard": ["translate", model, *LINES, "--guard", "retry", "--json", "--beam", "2"],
        "score": ["score", model, "--input", str(base / "a.en"), "--target", str(base / "a.en")],
        "cover": ["translate", model, *LINES, "--set", "decoding.coverage_penalty=0.2"],
        "version": ["--version"],
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(commands), capture_output=True, text=True, check=True
    )
    found: dict[str, list[object]] = json.loads(ran.stdout.splitlines()[-1])
    assert not (base / "new").exists()
    return found


@pytest.mark.parametrize("name", NEEDING)
def test_what_needs_torch_says_so(done: dict[str, list[object]], name: str) -> None:
    assert done[name] == [2, "", f"regard: {NO_TORCH}\n"]


def test_the_version_is_told_and_the_engine_translates_what_evaluate_scores(done: dict[str, list[object]]) -> None:
    assert done["version"][0] == 0
    if not kernels.available():
        pytest.skip("no compiler was there when Regard was installed")
    expected = (("translate", "", 2), ("evaluate", "BLEU ", 10), ("cover", "", 2), ("score", "-", 40))
    for command, begins, lines in expected:
        code, out, err = done[command]
        assert (code, err, len(str(out).splitlines())) == (0, "", lines)
        assert str(out).startswith(begins)
    code, out, err = done["align"]
    links = str(out).splitlines()
    assert (code, len(links)) == (0, 40)
    assert all({link.partition("-")[2] for link in line.split()} == {"0", "1", "2"} for line in links)
    code, out, err = done["guard"]
    for line in map(json.loads, str(out).splitlines()):
        assert line["guard"]["read"]
        assert {"text", "confidence"} <= line["words"][0].keys()


def test_what_works_without_torch_needs_nothing_that_regard_run_lacks() -> None:
    program = """
import importlib, pkgutil, sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name == "torch" or f"{name.replace('.', '/')}/".startswith(tuple(sys.argv[1:])):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Lacking())
for base in ("serving", "documents", "engine", "decoding", "text", "cli"):
    package = importlib.import_module(f"regard.{base}")
    for one in pkgutil.walk_packages(package.__path__, f"regard.{base}."):
        one.name.endswith("__main__") or importlib.import_module(one.name)
"""
    lacking = load_script("scripts/divide_wheel.py").WHOLE_ONLY
    subprocess.run([sys.executable, "-c", program, *lacking], check=True)


def test_python_says_so_too() -> None:
    program = """
import sys
sys.modules["torch"] = None
import regard
try:
    regard.train
except regard.RegardError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{NO_TORCH}\n"
