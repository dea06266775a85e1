"""What a run was made of and by is kept over its starts, and never tells more than is known."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from regard.system.errors import Damaged
from regard.training.checkpoints.provenance import EARLIER, NAME, Provenance, RunInputs, load, record
from tests.refusals import refused
from tests.training.toy import Fast, flip

NOW = Provenance((), ("1.0, torch 2.11",), ("a processor",))
BEGUN = {"fingerprint.processor": "a processor", "chosen.steps": 4}
"""The fields of a run that has begun."""


def given(folder: Path, command: str = "regard train", licence: str | None = None) -> RunInputs:
    (folder / "a|b.en").write_bytes(b"the cat\n")
    return RunInputs(command, (("a|b.en", folder / "a|b.en"),), licence)


def test_what_is_kept_is_what_was_given(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    made = record(tmp_path, given(tmp_path, licence="CC0"), NOW, {}, Fast())
    assert load(tmp_path) == made
    (file,) = made.files
    assert (file.name, file.size, file.sha256) == ("a|b.en", 8, hashlib.sha256(b"the cat\n").hexdigest())
    assert (made.commands, made.versions, made.licence) == (("regard train",), NOW.versions, "CC0")
    assert str(tmp_path) not in (tmp_path / NAME).read_text()


def test_another_start_adds_what_differs_and_changes_nothing_of_before(tmp_path: Path) -> None:
    first = record(tmp_path, given(tmp_path, licence="CC0"), NOW, {}, Fast())
    written = (tmp_path / NAME).stat().st_mtime_ns
    assert record(tmp_path, given(tmp_path), NOW, BEGUN, Fast()) == first
    assert (tmp_path / NAME).stat().st_mtime_ns == written
    (tmp_path / "a|b.en").unlink()  # it is not read again
    later = Provenance((), ("1.1, torch 2.12",), ("another",))
    inputs = RunInputs("regard train --steps 9", (("c", tmp_path / "absent"),), "CC BY 4.0")
    made = record(tmp_path, inputs, later, BEGUN, Fast())
    assert made.files == first.files
    assert made.commands == ("regard train", "regard train --steps 9")
    assert (made.versions, made.processors) == ((*NOW.versions, *later.versions), ("a processor", "another"))
    assert made.licence == "CC BY 4.0"


def test_a_start_that_began_no_run_leaves_nothing(tmp_path: Path) -> None:
    record(tmp_path, given(tmp_path, "regard train --steps 7"), NOW, {}, Fast())
    assert record(tmp_path, given(tmp_path), NOW, {}, Fast()).commands == ("regard train",)


def test_a_run_begun_by_an_earlier_regard_says_so(tmp_path: Path) -> None:
    made = record(tmp_path, given(tmp_path), NOW, {"fingerprint.processor": "an old one"}, Fast())
    assert made.versions == (EARLIER, *NOW.versions)
    assert made.processors == ("an old one", "a processor")
    assert len(made.files) == 1


def test_damage_is_found_and_told(tmp_path: Path) -> None:
    record(tmp_path, given(tmp_path, "regard train --seed 1"), NOW, {}, Fast())
    flip(tmp_path / NAME)
    with refused(Damaged, tmp_path / NAME):
        load(tmp_path)
    told: list[str] = []
    made = record(tmp_path, given(tmp_path), NOW, BEGUN, Fast(), told.append)
    assert len(told) == 1
    assert (made.commands, made.versions[0]) == (("regard train",), EARLIER)
    assert load(tmp_path) == made


@pytest.mark.parametrize("text", ["a|b", "a`b", "<b>\n* x", "\udcff", "#"])
def test_no_text_breaks_a_card(text: str) -> None:
    made = Provenance((text,), (text,), (text,), (), text)
    lines = [*made.data_lines(), *made.training_lines(datetime(2026, 11, 23, 7, 0, tzinfo=UTC), 1234.4)]
    assert "| written | 2026-11-23 07:00:00 UTC |" in lines
    assert "| training | 1,234.4 seconds, validations included |" in lines
    for line in lines:
        line.encode()
        assert "\n" not in line
        assert not line.startswith("*")
        assert line.replace("\\|", "").count("|") in (0, 3), line


def test_of_nothing_nothing_is_said() -> None:
    assert (Provenance().data_lines(), Provenance().training_lines()) == ([], [])
