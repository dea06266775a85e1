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


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n")
    with refused(RegardError, "a.txt"):
        UnlabelledTexts((tmp_path / "a.txt",)).texts()
