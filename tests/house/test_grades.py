import subprocess
import sys
from pathlib import Path

import pytest

from grades import forbidden, representative

PLUGINS = Path(__file__).parents[1] / "plugins"

TESTS = """
import time
import pytest

def test_quick(): pass

@pytest.mark.long
@pytest.mark.parametrize("n", range(4))
def test_long(n): time.sleep(0.05)

@pytest.mark.one_of(3)
@pytest.mark.parametrize("n", range(7))
def test_thinned(n): pass

@pytest.mark.parametrize("n", [pytest.param(n, marks=pytest.mark.one_of(3 if n < 3 else 2)) for n in range(7)])
def test_thinned_by_parameter(n): pass

@pytest.mark.long(minutes=30)
def test_too_long_for_a_slice(): pass

@pytest.mark.skip(reason="REASON")
def test_skipped(): pass
"""


def run(folder: Path, *arguments: str, reason: str = "needs a gpu", ci: bool = False) -> tuple[int, str]:
    (folder / "test_it.py").write_text(TESTS.replace("REASON", reason))
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {PLUGINS}\nmarkers =\n    long: x\n    one_of: x\n")
    command = [sys.executable, "-m", "pytest", "-p", "grades", "-v", "-rs", *arguments]
    environment = {"PATH": "", "PYTHONPATH": str(PLUGINS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment |= {"REGARD_CI": "1"} if ci else {}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout


def test_default_grade_leaves_long_tests_out(tmp_path: Path) -> None:
    code, output = run(tmp_path)
    assert code == 0
    assert "test_quick PASSED" in output
    assert "7 passed, 1 skipped, 2 deselected" in output
    assert output.count("::test_thinned[") == 3
    assert output.count("::test_thinned_by_parameter[") == 3


@pytest.mark.parametrize("share", [3, 6, 12])
def test_every_value_of_a_parameter_is_in_the_default_grade(share: int) -> None:
    names = [f"{a}-{b}-{c}" for a in range(6) for b in "xyz" for c in range(6)]  # 6 divides what is thinned by 6 and 12
    kept = representative(names, share)
    assert len(kept) == len(names) // share
    for place, values in enumerate((6, 3, 6)):
        assert len({name.split("-")[place] for name in kept}) == values
    assert kept == representative(names[::-1], share)


def test_all_runs_everything(tmp_path: Path) -> None:
    assert "20 passed, 1 skipped" in run(tmp_path, "--all")[1]
    assert len(representative(["a", "b"], 64)) == 1, "a thinned test is never left out"


def test_slice_runs_long_tests_that_fit_in_seeded_order(tmp_path: Path) -> None:
    outputs = [run(tmp_path, "--slice", seed)[1] for seed in ("a", "a", "b")]
    orders = [[line.split()[0] for line in output.splitlines() if "PASSED" in line] for output in outputs]
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(orders[2])
    assert orders[0] != orders[2]
    assert "slice a: 12 of 13 long tests" in outputs[0]
    code, output = run(tmp_path, "--slice", "a", "-k", "quick")
    assert (code, "0 of 0 long tests" in output) == (0, True)


@pytest.mark.parametrize(("reason", "expected"), [("needs a gpu", 0), ("could not import 'ctranslate2'", 1)])
def test_ci_fails_on_a_skip_it_could_have_avoided(tmp_path: Path, reason: str, expected: int) -> None:
    assert run(tmp_path, reason=reason, ci=True)[0] == expected
    assert run(tmp_path, reason=reason)[0] == 0


def test_reasons() -> None:
    assert not any(map(forbidden, ["needs a GPU", "set REGARD_DATA", "no browser", "node is absent", "no compiler"]))
    assert all(map(forbidden, ["could not import 'transformers'", "no data", "slow", ""]))
