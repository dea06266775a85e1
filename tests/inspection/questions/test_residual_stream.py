"""What sub-layers add, and the predictions after each layer, against the model itself."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from regard.inspection.forward.inputs import text_inputs
from regard.inspection.forward.outputs import scores
from regard.inspection.questions.residual_stream import sub_layers
from regard.system.errors import UsageError
from tests.inspection.payloads import Ask, TaskOf
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, GAPPED, SOURCE, TARGET

STACKS = [("translator", "encoder"), ("translator", "decoder"), ("speaker", "decoder"), ("filler", "encoder")]


@pytest.mark.parametrize("name", EVERY)
def test_every_model_has_a_stream_or_says_so(ask: Ask, task: TaskOf, name: str) -> None:
    if "rnn" in task(name).recipe.model.family:
        with refused(UsageError, "model"):
            ask("layers", name)
        return
    values, arrays = ask("layers", name)
    shape = len(values["parts"]), len(values["tokens"])
    assert arrays["length"].shape == arrays["cosine"].shape == shape
    assert (np.abs(arrays["cosine"]) <= 1 + 1e-6).all()
    assert (arrays["length"] > 0).all()
    if values["lens"] is not None:
        assert arrays["own"].shape == arrays["rank"].shape == (len(values["lens"]), shape[1])
        np.testing.assert_array_equal(arrays["rank"][-1], 1)
        assert (arrays["own"] <= arrays["best"] + 1e-6).all()


@pytest.mark.parametrize(("name", "stack"), STACKS)
def test_what_is_added_makes_the_stream(task: TaskOf, name: str, stack: str) -> None:
    """Pre-norm: the embedding and all that was added is the last stream; post-norm: each sum, normalised."""
    loaded = task(name)
    seen = text_inputs(loaded, GAPPED if name == "filler" else SOURCE, TARGET if name == "translator" else None)
    found = sub_layers(seen, stack)
    crossed = ["cross"] if (name, stack) == ("translator", "decoder") else []
    parts = ["attention", *crossed, "feedforward"]
    assert [one.part for one in found] == parts * (len(found) // len(parts))
    for one, next_ in pairwise(found):
        assert next_.before_TD is one.after_TD
    if loaded.recipe.model.norm_place == "pre":
        whole_TD = found[0].before_TD + sum(one.added_TD for one in found)
        torch.testing.assert_close(whole_TD, found[-1].after_TD, atol=1e-5, rtol=1e-5)
    else:
        norm = getattr(loaded.model, stack).layers[0].attention_residual.norm
        summed_TD = norm(found[0].before_TD + found[0].added_TD)
        torch.testing.assert_close(summed_TD, found[0].after_TD, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["translator", "speaker", "filler"])
def test_the_last_layers_prediction_is_the_models(ask: Ask, task: TaskOf, name: str) -> None:
    given = {"target": TARGET} if name == "translator" else {}
    _, arrays = ask("layers", name, **given)
    seen = text_inputs(task(name), GAPPED if name == "filler" else SOURCE, given.get("target"))
    np.testing.assert_allclose(arrays["best"][-1], scores(seen).softmax(1).numpy().max(1), atol=1e-6)
