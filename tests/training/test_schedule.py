"""Learning rates against the formulas written out."""

import math

import pytest

from regard.config import Training
from regard.system.errors import UsageError
from regard.training.budget import Replanning
from regard.training.schedule import schedule
from tests.refusals import refused


def rates(d_model=512, **training):
    section = Training(**training)
    rate = schedule(section, d_model)
    return [rate(step) for step in range(1, (section.steps or 20_000) + 1)]


def test_noam_is_the_papers_formula():
    found = rates(schedule="noam", rate=2.0, warmup=4000)
    for step in range(1, 20_001):
        assert found[step - 1] == pytest.approx(2.0 * 512**-0.5 * min(step**-0.5, step * 4000**-1.5), rel=1e-12)
    assert max(found) == found[3999]


def test_inverse_square_root():
    for step, found in enumerate(rates(schedule="inverse_square_root", rate=1e-3, warmup=100), 1):
        assert found == pytest.approx(1e-3 * (step / 100 if step <= 100 else math.sqrt(100 / step)), rel=1e-12)


@pytest.mark.parametrize("steps", [11, 57, 1000])
@pytest.mark.parametrize("warmup", [0, 3, 50])
def test_cosine_and_linear_end_at_zero_at_exactly_the_last_step(steps, warmup):
    cosine = rates(schedule="cosine", rate=0.3, warmup=warmup, steps=steps)
    linear = rates(schedule="linear", rate=0.3, warmup=warmup, steps=steps)
    warm = min(warmup, steps // 10)  # never more than a tenth
    for step in range(1, steps + 1):
        if step <= warm:
            wanted = (0.3 * step / warm,) * 2
        else:
            down = (step - warm) / (steps - warm)
            wanted = (0.3 * (1 + math.cos(math.pi * down)) / 2, 0.3 * (1 - down))
        assert (cosine[step - 1], linear[step - 1]) == pytest.approx(wanted, rel=1e-9, abs=1e-15)
    for name in ("cosine", "linear"):  # which need an end
        with refused(UsageError, "training.steps"):
            schedule(Training(schedule=name), 512)
    assert cosine[-1] == linear[-1] == 0.0
    assert min(cosine[:-1]) > 0.0
    assert min(linear[:-1]) > 0.0


@pytest.mark.parametrize("name", ["noam", "inverse_square_root", "cosine", "linear"])
def test_warm_up_is_linear_and_capped(name):
    found = rates(schedule=name, rate=1.0, warmup=400, steps=1000)
    assert found.index(max(found)) == 99
    assert found[9] == pytest.approx(10 * found[0])
    short = [rate for steps in (1, 2, 9) for rate in rates(schedule=name, steps=steps)]
    assert all(math.isfinite(rate) and rate >= 0 for rate in short)


@pytest.mark.parametrize("name", ["cosine", "linear"])
@pytest.mark.parametrize(("planned", "steps"), [(100, 300), (100, 51), (101, 80), (7, 9), (100, 100)])
def test_planned_anew_it_goes_on_from_where_it_is_to_zero_at_the_new_end(name, planned, steps):
    section, at = Training(schedule=name, rate=0.3, warmup=20, steps=planned), planned // 2
    before, found = schedule(section, 512), schedule(section, 512, Replanning(at, planned, steps))
    assert [found(step) for step in range(1, at + 1)] == [before(step) for step in range(1, at + 1)]
    assert found(at) == pytest.approx(found(at + 1e-9))
    way = [found(step) for step in range(at, steps + 1)]
    assert way[-1] == 0.0 < way[-2]
    assert way == sorted(way, reverse=True)
    for share in (0.25, 0.5, 0.75):  # of the way that is left, as far down as before
        assert found(at + share * (steps - at)) == pytest.approx(before(at + share * (planned - at)), rel=1e-9)
    if steps == planned:
        assert way == [before(step) for step in range(at, steps + 1)]


@pytest.mark.parametrize("name", ["noam", "inverse_square_root"])
def test_a_schedule_without_an_end_is_not_planned_anew(name):
    section = Training(schedule=name, warmup=4000, steps=1000)
    before, found = schedule(section, 512), schedule(section, 512, Replanning(500, 1000, 3000))
    assert [found(step) for step in range(1, 3001)] == [before(step) for step in range(1, 3001)]
