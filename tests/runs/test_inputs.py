"""A card names files without their folders, and the command that makes the same."""

from pathlib import Path

import pytest

from regard.runs.inputs import LONGEST, check_licence, named_files, shell_line
from regard.system.errors import UsageError
from tests.refusals import refused


def test_a_command_has_the_names_of_the_command_line_and_no_folder() -> None:
    options = {
        "source": [Path("/corpora/a b.en"), "x/c.en"],
        "target": "/corpora/a.de",
        "output": Path("out/model"),
        "start_from": Path("/models/bert"),
        "settings": ("model.d_model=8", "text.units=characters"),
        "weights": (1.0, 0.5),
        "minutes": 10.0,
        "steps": None,
        "columns": "label text",
        "despite_check": True,
        "tensorboard": False,
        "allow_mismatch": (),
    }
    assert shell_line("train", options) == (
        "regard train --source 'a b.en' --source c.en --target a.de --output model --from bert --set model.d_model=8 "
        "--set text.units=characters --weight 1 --weight 0.5 --minutes 10 --columns 'label text' --despite-check"
    )


def test_a_recipe_is_named_whether_it_is_a_file_or_values() -> None:
    assert shell_line("train", {"recipe": "/etc/r.toml"}) == "regard train --recipe r.toml"
    assert shell_line("train", {"recipe": {"seed": 2}}) == "regard train --recipe recipe.toml"
    assert shell_line("compare", {"steps": 3}, [Path("/a/gru.toml"), "b.toml"]) == (
        "regard compare gru.toml b.toml --steps 3"
    )


def test_the_folder_of_the_process_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell_line("train", {"output": "."}) == f"regard train --output {tmp_path.name}"


def test_each_file_is_named_once() -> None:
    found = named_files(["/x/a", "b"], "b", None, [Path("y/a")], [])
    assert found == (("a", Path("/x/a")), ("b", Path("b")), ("a", Path("y/a")))


@pytest.mark.parametrize("licence", ["", " ", "a\nb", "x" * (LONGEST + 1), "\x1b[1m"])
def test_a_licence_is_one_short_line(licence: str) -> None:
    check_licence(None)
    check_licence("CC BY-SA 4.0")
    with refused(UsageError, "--licence"):
        check_licence(licence)
