"""Intervals over seeds by Student's t, against its density integrated."""

import math

import numpy as np
import pytest

from regard.explore.pictures.comparison import STUDENT, estimate


@pytest.mark.parametrize("freedom", range(1, len(STUDENT) + 1))
def test_student(freedom: int) -> None:
    place = np.linspace(0.0, STUDENT[freedom - 1], 200_001)
    log = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    density = np.exp(log - (freedom + 1) / 2 * np.log1p(place**2 / freedom))
    assert 0.5 + np.trapezoid(density, place) == pytest.approx(0.975, abs=2e-5)


def test_mean_and_interval() -> None:
    values = [30.0, 31.5, 33.0]
    found = estimate(values)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    assert found.half == pytest.approx(4.303 * np.std(values, ddof=1) / math.sqrt(3))
    assert found.to_text(1) == "31.5 ± 3.7"
    many = estimate(list(range(40)))
    assert many is not None
    assert many.half == pytest.approx(1.96 * np.std(range(40), ddof=1) / math.sqrt(40))


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    assert estimate([]) is None
    one = estimate([12345.6])
    assert one is not None
    assert one.to_text(0) == "12,346"
