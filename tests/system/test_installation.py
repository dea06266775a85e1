"""Two versions on top of each other are refused, and what is left out is told from another missing module."""

from pathlib import Path

import pytest

from regard.system import installation
from regard.system.errors import UsageError
from regard.system.installation import missing, refuse_mixture, version_of
from tests.refusals import refused

ONE = (
    [],
    ["regard-0.1.0.dist-info"],
    ["regard_run-0.1.0.dist-info", "regard-0.1.0.dist-info"],
    ["regard_run-0.2.0.dist-info", "regards-0.1.0.dist-info", "regard-0.1.0.data"],
)
TWO = ["regard_run-0.2.0.dist-info", "regard-0.1.0.dist-info"]


@pytest.mark.parametrize("names", [*ONE, TWO])
def test_two_versions_on_top_of_each_other_are_named(names: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    if names != TWO:
        refuse_mixture(str(tmp_path))
        return
    with refused(UsageError, None, "regard 0.1.0", "regard-run 0.2.0", "pip uninstall"):
        refuse_mixture(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "told"), [("torch", True), ("torch.nn", True), ("sacrebleu", True), ("torchvision", False), (None, False)]
)
def test_the_missing_module_is_one_of_those_left_out_or_another(name: str | None, told: bool) -> None:
    assert (missing(ModuleNotFoundError("no", name=name)) is not None) == told


def test_a_module_of_ours_is_missing_where_regard_run_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ImportError("cannot import name 'store' from 'regard.models'", name="regard.models")
    installed = {"regard_run": "0.1.0", "regard": "0.1.0"}
    monkeypatch.setattr(installation, "version_of", lambda name: installed.get(name, "none"))
    assert missing(error) is None
    del installed["regard"]
    assert "pip install regard" in str(missing(error))


def test_what_is_not_installed_has_no_version() -> None:
    assert version_of("regard-of-no-index") == "none"
    assert version_of("numpy").split(".")[0].isdigit()
