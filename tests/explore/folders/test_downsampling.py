"""Curves whose columns start late, and means over missing values."""

from __future__ import annotations

import numpy as np
import pytest

from regard.explore.folders.training_curves import Curves


def test_columns_may_begin_late_and_miss_rows() -> None:
    curves = Curves(["a"])
    for step, values in enumerate([{"a": 1.0}, {"b": 2.0}, {"a": 3.0, "b": 4.0}]):
        curves.add(step, values)
    steps, columns = curves.downsample(10)
    assert steps.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(columns["a"], [1, np.nan, 3])
    np.testing.assert_array_equal(columns["b"], [np.nan, 2, 4])


@pytest.mark.parametrize("points", [1, 3, 7, 50, 100])
def test_means_by_plain_loops(points: int) -> None:
    draw = np.random.default_rng(points)
    values = np.where(draw.random(50) < 0.3, np.nan, draw.normal(size=50))
    curves = Curves()
    for step, value in enumerate(values):
        curves.add(step, {"a": value})
    steps, columns = curves.downsample(points)
    width = next(width for width in range(1, 51) if -(-50 // width) <= points)
    assert len(steps) == len(columns["a"]) == -(-50 // width) <= points
    for place, begin in enumerate(range(0, 50, width)):
        known = [value for value in values[begin : begin + width] if np.isfinite(value)]
        assert columns["a"][place] == pytest.approx(sum(known) / len(known) if known else np.nan, nan_ok=True)
        assert steps[place] == pytest.approx(np.mean(range(begin, min(50, begin + width))))


def test_there_are_only_so_many_columns() -> None:
    curves = Curves(["a"], most=2)
    curves.add(1, {"b": 1.0, "c": 1.0})
    curves.add(2, {"c": 1.0, "a": 5.0})
    assert [*curves.columns] == ["a", "b"]
    np.testing.assert_array_equal(curves.columns["a"], [np.nan, 5])
