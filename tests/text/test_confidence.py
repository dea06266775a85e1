"""How sure an output is, by plain loops, and the file of a model folder that says which outputs are doubted."""

import math
from pathlib import Path

import pytest

from regard.system.errors import Damaged, RegardError
from regard.text.confidence import CONFIDENCE, confidence_content, confidence_of, is_doubted, read_doubted_below
from tests.refusals import refused


def test_it_is_the_geometric_mean_of_probabilities() -> None:
    probabilities = [0.9, 0.5, 0.2, 1.0]
    whole = sum(map(math.log, probabilities))
    assert confidence_of(whole, 4) == pytest.approx(math.prod(probabilities) ** 0.25)
    assert confidence_of(-math.inf, 3) == 0.0
    assert confidence_of(0.0, 0) == 1.0
    assert math.isnan(confidence_of(math.nan, 3))


@pytest.mark.parametrize(
    ("confidence", "below", "doubted"),
    [(0.3, 0.6, True), (0.6, 0.6, False), (0.3, None, None), (0.0, 0.0, None), (math.nan, 0.6, None)],
)
def test_less_than_usual_is_doubted_where_both_are_known(
    confidence: float, below: float | None, doubted: bool | None
) -> None:
    assert is_doubted(confidence, below) is doubted


def test_the_file_gives_back_the_number(tmp_path: Path) -> None:
    assert read_doubted_below(tmp_path) is None
    for below in (0.0, 0.9055, 1.0):
        (tmp_path / CONFIDENCE).write_bytes(confidence_content(below))
        assert read_doubted_below(tmp_path) == below


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", *(f'{{"doubted_below": {one}}}' for one in ("-1", "2", "true", "NaN", '"a"', "null"))]
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / CONFIDENCE).write_text(content)
    with refused(Damaged, CONFIDENCE, "damaged"):
        read_doubted_below(tmp_path)


def test_a_file_of_a_newer_regard_is_refused(tmp_path: Path) -> None:
    (tmp_path / CONFIDENCE).write_text('{"format": 99, "below": 1}')
    with refused(RegardError, CONFIDENCE, "newer"):
        read_doubted_below(tmp_path)
