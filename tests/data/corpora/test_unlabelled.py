"""Texts without labels, read from files."""

import gzip
from pathlib import Path

import pytest

from regard.data.corpora import unlabelled
from regard.data.corpora.unlabelled import UnlabelledTexts
from regard.system.errors import RegardError
from tests.refusals import refused


def test_each_text_once_and_no_blank_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\n two \none\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"two\nthree\n"))
    found = UnlabelledTexts((tmp_path / "a.txt", tmp_path / "b.txt.gz"))
    assert found.texts() == ["one", "two", "three"]
    (tmp_path / "c.txt").write_text("one\ntwo\nthree")
    assert UnlabelledTexts((tmp_path / "c.txt",)).fingerprint == found.fingerprint
    (tmp_path / "c.txt").write_text("one\ntwo\nfour")
    assert UnlabelledTexts((tmp_path / "c.txt",)).fingerprint != found.fingerprint


def test_long_and_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlabelled, "MOST", 2)
    monkeypatch.setattr(unlabelled, "LONGEST", 5)
    (tmp_path / "a.txt").write_text("one two\nthree\nfour\n")
    assert UnlabelledTexts((tmp_path / "a.txt",)).texts() == ["one t", "three"]


def test_what_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"caf\xe9\none\ntwo\n\nna\xefve\n")
    found = UnlabelledTexts((path,))
    assert found.texts() == ["caf\ufffd", "one", "two", "na\ufffdve"]
    assert found.summary == ["4 unlabelled texts", f"{path}:1: 2 lines are not valid UTF-8; bytes became U+FFFD"]
    monkeypatch.setattr(unlabelled, "CHARACTERS", 6)
    assert found.texts() == ["caf\ufffd", "one"]
    assert UnlabelledTexts((path,)).summary[0] == "2 unlabelled texts; what follows is not read"
    path.write_text("one\nfour\n")
    assert UnlabelledTexts((path, path)).summary == ["2 unlabelled texts"]  # nothing new follows


@pytest.mark.parametrize("name", ["a.csv", "a.TSV", "a.jsonl.gz"])
def test_tables_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"text,label\n"))
    with refused(RegardError, name, "one a line"):
        UnlabelledTexts((tmp_path / name,)).texts()


def test_lone_carriage_returns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\rtwo\rthree\r")
    with refused(RegardError, "a.txt:1", "carriage returns"):
        UnlabelledTexts((tmp_path / "a.txt",)).texts()


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n")
    with refused(RegardError, "a.txt"):
        UnlabelledTexts((tmp_path / "a.txt",)).texts()
