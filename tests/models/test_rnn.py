"""The recurrent family as a whole, held to the laws of the house."""

import numpy as np
import pytest
import torch

from regard.models.inputs import pairs
from regard.nn import ops
from regard.nn.hooks import capture
from tests.laws.families import FEW as FEW_OF
from tests.models.small_models import assert_near, batch, same, sentences, some_pairs
from tests.models.small_models import rnn as small

LENGTHS = [(5, 4), (1, 6), (7, 1), (3, 3)]
SOURCES, TARGETS = sentences([5, 1, 7, 3]), sentences([4, 6, 1, 3], seed=9)
FEW = FEW_OF["rnn"]
ATTENDS = [choices for choices in FEW if choices["score"] != "none"]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("choices", ATTENDS, ids=lambda choices: f"{choices['cell']}-{choices['score']}")
def test_points_and_their_shapes(choices) -> None:
    model = small(**choices)
    given = pairs(batch(SOURCES, TARGETS))
    with capture(["*"]) as heard, torch.no_grad():
        model(given)
    fed = choices["input_feeding"]
    queries = [1] * sum(map(len, TARGETS)) if fed else [len(target) for target in TARGETS]
    for point in ("query", "score", "weight", "context"):
        assert [x.shape[:2] for x in heard[f"decoder.cross.{point}"]] == [(1, q) for q in queries]
    assert {f"{side}.input.embedding" for side in ("encoder", "decoder")} < set(heard)
    assert sum(len(x) for x in heard["decoder.cross.output"]) == sum(map(len, TARGETS))


def test_without_attention_only_the_last_state_is_seen() -> None:
    model, given = small(score="none"), some_pairs(LENGTHS)
    memory = model.encoder(given.source)
    plain_TD = model.decoder(given.target, memory, given.source)
    memory.memory_SD.detach().zero_()
    assert same(model.decoder(given.target, memory, given.source).detach(), plain_TD.detach())
    memory.last_BX.detach().zero_()
    assert not torch.equal(model.decoder(given.target, memory, given.source), plain_TD)


def test_a_source_without_tokens_gives_no_context() -> None:
    for choices in FEW:
        model = small(**choices)
        hidden_TD = model(some_pairs([(0, 3), (4, 2)]))
        assert torch.isfinite(hidden_TD).all()
        assert_near(hidden_TD[:3], model(some_pairs([(0, 3)])), 1e-9)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("path", ["onednn", "bf16"])
@pytest.mark.parametrize("choices", FEW, ids=lambda choices: "-".join(map(str, choices.values())))
def test_other_paths_of_products(path, choices) -> None:
    """Products elsewhere; recurrence, scores and everything that is handed on stay in fp32."""
    model, given = small(dtype=torch.float32, **choices).train(), some_pairs(LENGTHS, tail=1)
    exact_TD = model(given).detach()
    ops.use(model, path)
    hidden_TD = model(given)
    assert hidden_TD.dtype == torch.float32
    assert_near(hidden_TD, exact_TD, 5e-2 if path == "bf16" else 1e-4)
    hidden_TD.sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in model.parameters())


def test_positions_are_not_needed_to_tell_an_order() -> None:
    model = small()
    forwards, backwards = np.array([3, 4, 5, 0]), np.array([5, 4, 3, 0])
    one, other = (model(pairs(batch([source], [TARGETS[0]]))) for source in (forwards, backwards))
    assert (one - other).abs().max() > 0.01
