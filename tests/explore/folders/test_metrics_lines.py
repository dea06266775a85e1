"""Logged values are taken unchanged or rejected; whole logs are covered in ``test_course``."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

from regard.explore.folders.training_curves import (
    NAME,
    SCORES,
    STEPS,
    TEXT,
    parse_line,
    parse_number,
    parse_numbers,
    parse_sample,
    parse_step,
    parse_validation,
)

TEXTS = {"source": "a", "reference": "b", "hypothesis": "c"}


@pytest.mark.parametrize("value", [0, 5, -2.5, 1e38, -(2**70)])
def test_numbers_that_can_be_drawn(value: float) -> None:
    assert parse_number(value) == value
    assert np.isfinite(np.float32(parse_number(value)))


@pytest.mark.parametrize("value", [nan, inf, -inf, 1e39, 10**400, True, False, None, "5", [5], {"a": 5}])
def test_what_is_no_number(value: Any) -> None:
    assert isnan(parse_number(value))
    assert parse_numbers({"a": value, "b": 1}) == {"b": 1.0}


def test_steps_are_whole() -> None:
    assert [parse_step(value) for value in (0, 7, STEPS)] == [0, 7, STEPS]
    assert {parse_step(value) for value in (-1, STEPS + 1, 1.0, True, "1", None, [1], nan)} == {None}


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b"nothing", b"\xff", b"[" * 10**5, b"1" * 5000, b'"a"'])
def test_a_line_without_an_object_says_nothing(line: bytes) -> None:
    assert parse_line(line) is None


def test_a_validation_has_a_step_and_a_loss() -> None:
    given = {"kind": "valid", "step": 3, "loss": 2.5, "best": True, "seconds": 1, "bleu": 7.5, "chrf": None}
    assert parse_validation(given) == {"step": 3, "loss": 2.5, "best": True, "seconds": 1, "bleu": 7.5}
    for name in ("step", "loss"):
        assert parse_validation({**given, name: None}) is None
    many = parse_validation({**given, "x" * (NAME + 1): 1, **{f"score {one}": 1 for one in range(1000)}})
    assert many is not None
    assert len(many) <= SCORES + 2
    assert "x" * (NAME + 1) not in many


def test_a_sample_has_three_texts() -> None:
    assert parse_sample({"step": 3, **TEXTS, "more": 1}) == {"step": 3, **TEXTS}
    for name in ("step", *TEXTS):
        assert parse_sample({"step": 3, **TEXTS, name: None}) is None
    cut = parse_sample({"step": 3, **TEXTS, "reference": "ä" * (TEXT + 1)})
    assert cut is not None
    assert cut["reference"] == "ä" * TEXT + "…"
