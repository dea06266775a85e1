import numpy as np
import pytest

from regard.models.inputs import pairs
from tests.models.small_models import PIECES, arrays, assert_near, batch, section, sentences, small
from tests.reference import equations

NORMS = {"layer": equations.layer_norm, "rms": equations.rms_norm}
ACTIVATIONS = {"relu": equations.relu, "gelu": equations.gelu}


def by_hand(model, choices, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The whole model for one pair of sentences."""
    weights = arrays(model)
    kind = equations.Kind(choices.heads, choices.norm_place, NORMS[choices.norm], ACTIVATIONS[choices.activation])

    def entered(stack: str, ids: np.ndarray) -> np.ndarray:
        positions = {
            "sinusoidal": equations.sinusoids(64, choices.d_model),
            "learned": weights.get(f"{stack}.input.positions.weight"),
            "none": None,
        }[choices.positions]
        return equations.embed(ids.tolist(), weights[f"{stack}.input.tokens.weight"], positions)

    memory = equations.stack(
        equations.part(weights, "encoder"),
        lambda x, w: equations.encoder_layer(x, w, kind),
        entered("encoder", source),
        kind,
    )
    return equations.stack(
        equations.part(weights, "decoder"),
        lambda x, w: equations.decoder_layer(x, memory, w, kind),
        entered("decoder", target),
        kind,
    )


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"norm_place": "pre", "activation": "gelu", "positions": "learned", "tie": "none"},
        {"norm": "rms", "positions": "none", "tie": "two", "d_k": 2, "d_v": 5, "encoder_layers": 1},
    ],
    ids=["paper", "pre", "rms"],
)
def test_it_is_the_equations_pair_by_pair(choices) -> None:
    chosen = section(**choices)
    model = small(chosen)
    source, target = sentences([4, 1, 6]), sentences([3, 5, 1], seed=9)
    given = pairs(batch(source, target, tail=3, spare=2))
    hidden_TD = model(given)
    start = 0
    for s, t in zip(source, target, strict=True):
        expected = by_hand(model, chosen, s, np.append(PIECES, t[:-1]))
        assert_near(hidden_TD[start : start + len(t)], expected, 1e-6)  # the sinusoids' table is float32
        start += len(t)


def test_what_is_tied_is_one_table() -> None:
    three, two, none = (small(section(tie=tie)) for tie in ("three", "two", "none"))
    assert three.encoder.input.tokens is three.decoder.input.tokens is three.output
    assert two.encoder.input.tokens is not two.decoder.input.tokens
    assert two.decoder.input.tokens is two.output
    tables = {id(t.weight) for t in (none.encoder.input.tokens, none.decoder.input.tokens, none.output)}
    assert len(tables) == 3
    assert three.pieces == PIECES
