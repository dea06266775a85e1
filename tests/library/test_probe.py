"""``regard.probe``: what passes at the named points, captured and replaced."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.nn import hooks
from regard.system.errors import RegardError, UsageError
from tests.library.conftest import given
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET

ModelOf = Callable[[str], Any]
POINT = "encoder.0.attention.weight"


def test_captured_weights_are_those_of_the_attention(model: ModelOf) -> None:
    translator = model("translator")
    with regard.probe.capture(translator, "encoder.*.attention.weight") as found:
        attention = translator.attention(SOURCE, TARGET, "encoder")
    captured = found[POINT]
    assert captured.axes == ("head", "query", "key")
    assert (captured.layer, captured.part, captured.point) == (1, "encoder.0.attention", "weight")
    assert POINT in repr(captured)
    np.testing.assert_array_equal(captured.tensors[0].numpy(), attention.weights[0])


def test_no_pass_is_taken_from_before_or_kept(model: ModelOf) -> None:
    """What a page or a notebook has asked for already is computed again, and an intervention is not remembered."""
    translator = model("translator")
    plain = translator.attention(SOURCE, TARGET, "encoder").weights
    with regard.probe.capture(translator, POINT) as found:
        translator.attention(SOURCE, TARGET, "encoder")
    assert found[POINT].tensors
    with regard.probe.intervene(translator, POINT, torch.zeros_like):
        assert not translator.attention(SOURCE, TARGET, "encoder").weights[0].any()
    np.testing.assert_array_equal(translator.attention(SOURCE, TARGET, "encoder").weights, plain)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", EVERY)
def test_the_points_listed_are_those_that_pass(name: str, model: ModelOf) -> None:
    """Every point that a pass tells is in the list: nothing is heard that a user cannot find."""
    one = model(name)
    with hooks.capture(["*"]) as heard:
        one.attention(given(name), TARGET if name in ("translator", "recurrent") else None)
    there = regard.probe.points(one)
    assert len(there) == len(set(there))
    assert set(heard) <= set(there)


def test_an_intervention_acts_in_every_method(model: ModelOf) -> None:
    translator = model("translator")
    replaced = regard.probe.intervene(translator, "encoder.*.residual", torch.zeros_like)
    captured = regard.probe.capture(translator, "encoder.0.feedforward_residual.residual")
    with replaced, captured as found:
        translator.translate(SOURCE)
    (one,) = found.values()
    assert not one.tensors[0].any()
    assert one.axes == ("token", "feature")


def test_a_point_that_is_not_there_is_refused(model: ModelOf) -> None:
    translator = model("translator")
    nowhere = "encoder.9.attention.weight"
    with refused(UsageError, nowhere), regard.probe.capture(translator, nowhere):
        pass
    with refused(UsageError, "nowhere"), regard.probe.intervene(translator, "nowhere", torch.zeros_like):
        pass
    with refused(UsageError, "model"):
        regard.probe.points("model")  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [lambda weight: weight[:1], lambda weight: 0])
def test_a_function_gives_a_tensor_of_the_same_shape(function: Any, model: ModelOf) -> None:
    translator = model("translator")
    with refused(RegardError, POINT), regard.probe.intervene(translator, POINT, function):
        translator.translate(SOURCE)
