"""``--minutes``: what fits, at the start and midway, held to runs that are played through."""

import math

import pytest

from regard.config import Training
from regard.training.budget import Costs, Length, Replanning, length, midway, poor, review, time_summary


def seconds_of(steps, every, costs, select, planned=None, last=None):
    """A run played through to step ``last``: each step, validation and save takes its time.

    Of a run that was planned anew, ``planned`` is how many steps it had before.
    """
    total = 3 * costs.save
    for step in range(1, (last or steps) + 1):
        total += costs.step
        known = planned if planned and step <= planned // 2 else steps
        if step % every == 0 or step == known:
            text = select in ("bleu", "chrf") or (select in ("auto", "last") and 2 * step > known)
            total += (costs.text if text else costs.loss) + 2 * costs.save
    return total


@pytest.mark.one_of(5)
@pytest.mark.parametrize("minutes", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("select", ["auto", "last", "loss", "bleu"])
@pytest.mark.parametrize("every", [None, 7, 500])
@pytest.mark.parametrize(
    "costs", [Costs(0.05, 0.1, 1.0, 0.02, 3.0), Costs(0.9, 0.5, 4.0, 0.2, 31.0), Costs(0.05, 0.1, 1.0, 0.02, 3.0, 5.0)]
)
def test_the_run_fits_and_fills_its_time(minutes, select, every, costs):
    found = length(minutes, costs, Training(validate_every=every, select=select))
    assert found.select is None
    if every is not None:
        assert found.validate_every == every
    took = costs.spent + seconds_of(found.steps, found.validate_every, costs, select) + costs.final
    budget = 0.9 * 60 * minutes
    assert took <= budget + 1e-6
    validation = costs.text + 2 * costs.save
    slack = costs.step + (validation if every is None else 2 * validation)
    assert took + slack > budget or math.ceil(found.steps / found.validate_every) < 20
    assert took > 0.7 * budget


def test_of_final_scores_a_tenth_of_the_minutes_is_kept_back_at_most():
    steps = [length(10, Costs(1.0, 0.0, 0.0, 0.0, 0.0, final), Training()).steps for final in (0, 15, 60, 600)]
    assert steps == [540, 525, 480, 480]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("every", [None, 3])
@pytest.mark.parametrize("select", ["auto", "last", "loss", "bleu"])
@pytest.mark.parametrize("costs", [Costs(0.1, 1.0, 1.0, 1.0, 10.0), Costs(100, 100, 1e4, 100, 100, 1e4)])
@pytest.mark.parametrize("minutes", [1e-6, 0.1, 0.2])
def test_few_minutes_make_a_step_at_least(minutes, costs, select, every):
    found = length(minutes, costs, Training(select=select, validate_every=every))
    assert found.steps >= 1
    assert found.validate_every >= 1
    assert review(minutes, costs, Training(select=select), found, 10 * costs.step).steps >= found.steps // 2


def test_where_validations_are_dear_the_steps_get_half_of_the_time():
    """Ninety seconds: time for four validations of 10, for one of 40; none of 200, but one is made."""
    plain = Training(select="loss")
    for loss, validations, steps in ((10, 4, 500), (20, 2, 500), (40, 1, 500), (200, 1, 1)):
        found = length(100 / 60, Costs(0.1, loss, loss, 0.0, 0.0), plain)
        assert (math.ceil(found.steps / found.validate_every), found.steps) == (validations, steps)
    for costs, validations in ((Costs(0.1, 1.0, 5.0, 0.0, 0.0), 5), (Costs(0.1, 0.01, 0.1, 0.0, 0.0), 20)):
        found = length(5, costs, Training(select="bleu"))
        assert math.ceil(found.steps / found.validate_every) == validations
    assert length(100 / 60, Costs(1.0, 10, 10, 0.0, 0.0), plain) == Length(80, 80), "too close to each other"


@pytest.mark.parametrize(
    ("select", "text", "found"),
    [("auto", 40, None), ("auto", 50, "loss"), ("auto", 1.0, None), ("last", 50, None), ("bleu", 50, None)],
)
def test_where_text_would_take_half_of_the_time_the_loss_decides(select, text, found):
    plan = length(100 / 60, Costs(1.0, 1.0, text, 0.0, 0.0), Training(select=select))
    assert plan.select == found
    assert plan.steps == (88 if text == 1 or found else 90 - text)


def test_where_there_is_little_time_that_is_said():
    costs = Costs(6.0, 21.0, 90.0, 0.1, 12.0, 65.0)
    said = poor(2, costs, length(2, costs, Training()))
    assert said is not None
    assert said.startswith("too little time to learn much: 10 steps in 2 minutes, and no validation translates (a step")
    assert "a step takes 6 s, a validation 21 s, the final scores about 1:05); give minutes=113 or more" in said
    assert length(113, costs, Training()).steps > 500
    assert "1 step in 1 minute (" in (poor(1, costs, Length(1, 1)) or "")
    assert poor(2, costs, Length(100, 50)) is None


def test_midway_the_final_scores_are_kept_back_as_they_will_really_take():
    """Of 200 steps of a second planned, half took twice as long; so will five seconds of scores."""
    costs, plain = Costs(1, 0, 0, 0, 0, 5), Training(select="loss")
    with_scores = review(300 / 60, costs, plain, Length(200, 1000), 200)
    assert with_scores == Replanning(100, 200, 100 + (90 - 10) // 2)
    assert review(300 / 60, Costs(1, 0, 0, 0, 0), plain, Length(200, 1000), 200).steps == 100 + 90 // 2


@pytest.mark.one_of(6)
@pytest.mark.parametrize("slower", [0.4, 0.6, 0.8, 1.0, 1.3, 1.7])
@pytest.mark.parametrize("select", ["auto", "last", "loss", "bleu"])
@pytest.mark.parametrize("every", [None, 7, 50])
@pytest.mark.parametrize("costs", [Costs(0.05, 0.1, 1.0, 0.02, 3.0), Costs(0.4, 0.5, 9.0, 0.2, 31.0)])
def test_midway_what_is_left_of_the_time_is_filled(slower, select, every, costs):
    """To nine tenths, with dear validations still to come, on a machine of another speed than measured."""
    section = Training(validate_every=every, select=select)
    first = length(5, costs, section)
    half, plan = first.steps // 2, (first.validate_every, costs, select)
    made = slower * seconds_of(first.steps, *plan, last=half)
    found = review(5, costs, section, first, made)
    assert (found.at, found.planned) == (half, first.steps)
    ahead = slower * seconds_of(found.steps, *plan, planned=first.steps) - made
    left = 300 - costs.spent - made
    if found.steps == first.steps:
        assert ahead <= left
        return
    assert ahead <= 0.9 * left + 1e-6
    assert ahead + slower * (costs.step + 2 * costs.text + 2 * costs.save) > 0.9 * left
    assert (found.steps > first.steps) == (slower < 1.2)


@pytest.mark.parametrize(
    ("left", "steps"), [(100, 190), (101, 190), (106, 200), (111, 200), (122, 200), (123, 210), (200, 280), (600, 600)]
)
def test_a_little_more_or_less_is_no_other_plan(left, steps):
    """Of 200 steps of a second each half are made; nine tenths of what is left go on, to no more than 600 in all."""
    found = review((7 + 100 + left) / 60, Costs(1, 0, 0, 0, 7), Training(select="loss"), Length(200, 1000), 100)
    assert found == Replanning(100, 200, steps)
    assert found.steps - 100 <= left


def test_midway_is_behind_a_step_and_where_nothing_is_left_one_more_ends_it():
    assert [midway(steps) for steps in (1, 2, 3, 4, 193)] == [1, 1, 1, 2, 96]
    found = review(1, Costs(1, 0, 0, 0, 7), Training(select="loss"), Length(40, 10), 300)
    assert found == Replanning(20, 40, 21)


def test_in_the_end_it_is_said_how_long_all_of_it_took():
    assert time_summary(None, 1.0, 1e9, 1.0) is None
    assert time_summary(2.0, 10, 80, 21) == "1:51 of 2 minutes: measuring 10 s, training 1:20, final scores 21 s"
    assert time_summary(2.0, 10, 89, 21) == "2:00 of 2 minutes: measuring 10 s, training 1:29, final scores 21 s"
    beyond = "2:35, which is 35 s beyond 2 minutes: measuring 10 s, training 1:50, final scores 35 s"
    assert time_summary(2.0, 10, 110, 35) == beyond
