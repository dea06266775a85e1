"""A log followed as it grows gives what the whole log gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.errors import RegardError
from regard.explore.course import LOG, Course


def line(kind: str, step: int, **values: Any) -> bytes:
    return json.dumps({"kind": kind, "step": step, **values}).encode() + b"\n"


def log() -> bytes:
    found = [line("start", 0, steps=20, parameters=7)]
    for step in range(1, 21):
        more = {"norms": {"encoder": 0.5 * step}} if step % 10 == 0 else {}
        loss = None if step == 7 else 9 - step / 4
        found.append(
            line("step", step, seconds=step / 2, loss=loss, rate=1e-3, tokens_per_second=100, norm=1.5, **more)
        )
        if step % 10 == 0:
            found += [line("sample", step, source="ä", hypothesis="b"), line("valid", step, loss=4.0, bleu=step / 1.0)]
    return b"".join([*found, line("save", 20, path="step-000020"), line("unheard of", 21)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / LOG).parent.mkdir()
    return tmp_path


@pytest.mark.parametrize("piece", [11, 37, 10_000])
def test_read_as_it_grows(folder: Path, piece: int) -> None:
    whole = log()
    course = Course(folder)
    for end in range(piece, len(whole) + piece, piece):
        (folder / LOG).write_bytes(whole[:end])
        course.advance()
    assert not course.advance()
    assert course.planned == 20
    assert course.columns["step"] == list(range(1, 21))
    assert np.isnan(course.columns["loss"][6])
    assert [each["bleu"] for each in course.valid] == [10, 20]
    assert [each["source"] for each in course.samples] == ["ä", "ä"]
    assert course.norms == [{"step": 10, "norms": {"encoder": 5.0}}, {"step": 20, "norms": {"encoder": 10.0}}]


def test_thinned_to_means(folder: Path) -> None:
    (folder / LOG).write_bytes(log())
    course = Course(folder)
    assert course.advance()
    found = course.thinned(6)
    assert found["step"].tolist() == [2.5, 6.5, 10.5, 14.5, 18.5]
    losses = [9 - step / 4 for step in (5, 6, 8)]  # that of step 7 is not known
    assert found["loss"][1] == pytest.approx(sum(losses) / 3)
    assert len(course.thinned(1000)["loss"]) == 20
    assert np.isnan(course.thinned(1000)["loss"][6])


def test_a_log_that_was_cut_is_read_anew(folder: Path) -> None:
    whole = log()
    (folder / LOG).write_bytes(whole)
    course = Course(folder)
    course.advance()
    (folder / LOG).write_bytes(b"".join(whole.splitlines(keepends=True)[:6]) + b'{"half\n[1]\n')
    course.advance()
    assert course.columns["step"] == [1, 2, 3, 4, 5]
    assert course.valid == []


def test_no_log_is_said(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="cannot be read"):
        Course(tmp_path).advance()
    (tmp_path / LOG).parent.mkdir()
    (tmp_path / LOG).write_bytes(b"")
    course = Course(tmp_path)
    assert not course.advance()
    assert course.thinned(10)["loss"].shape == (0,)
