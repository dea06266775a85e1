import subprocess
import sys

import pytest
import torch

from regard.config import RnnEncoderSection, RnnSection, TransformerSection
from regard.models import build
from regard.models.build import rnn, transformer
from tests.models.small_models import PIECES, section, small


@pytest.mark.parametrize(
    ("field", "table"),
    [
        ("norm", build.NORMS),
        ("activation", build.FEEDFORWARDS),
        ("norm_place", build.RESIDUALS),
        ("positions", build.POSITIONS),
    ],
)
def test_every_word_of_the_recipe_has_a_class(field: str, table: dict) -> None:
    words = TransformerSection.model_fields[field].annotation.__args__
    assert set(words) == set(table)


READS = RnnEncoderSection(d_model=12, pool="attention")
DRAWN = {
    "transformer": lambda key: transformer(section(), 20, 20, key),
    "rnn": lambda key: rnn(RnnSection(d_model=12), 20, 20, key),
    "rnn-encoder": lambda key: build.rnn_encoder(READS, 20, build.classes(READS, 5), key),
}


@pytest.mark.parametrize("family", DRAWN)
def test_weights_are_a_pure_function_of_the_key(family: str) -> None:
    one, again, other = (dict(DRAWN[family](key).named_parameters()) for key in (1, 1, 2))
    for name, value in one.items():
        assert torch.equal(value, again[name])
        constant = "bias" in name or "norm" in name or name.endswith("pool.query")
        assert torch.equal(value, other[name]) == constant, name


def test_three_way_tying_needs_one_vocabulary() -> None:
    for build_one, chosen in ((transformer, section()), (rnn, RnnSection(d_model=12))):
        with pytest.raises(ValueError):
            build_one(chosen, 20, 21)
    assert rnn(RnnSection(d_model=12, tie="two"), 20, 21).pieces == 21
    model = transformer(section(tie="two"), 20, 30)
    assert model.encoder.input.tokens.weight.shape[0] == 21
    assert model.output.weight.shape[0] == 31


def test_what_is_tied_is_one_table() -> None:
    three, two, none = (small(section(tie=tie)) for tie in ("three", "two", "none"))
    assert three.encoder.input.tokens is three.decoder.input.tokens is three.output
    assert two.encoder.input.tokens is not two.decoder.input.tokens
    assert two.decoder.input.tokens is two.output
    tables = {id(t.weight) for t in (none.encoder.input.tokens, none.decoder.input.tokens, none.output)}
    assert len(tables) == 3
    assert three.pieces == PIECES


def test_dropout_is_where_the_recipe_says() -> None:
    model = transformer(section(dropout=0.5, attention_dropout=0.25, feedforward_dropout=0.125), 20, 20)
    layer = model.decoder.layers[0]
    assert layer.cross.dropout == layer.attention.dropout == 0.25
    assert layer.feedforward.dropout.probability == 0.125
    assert layer.cross_residual.dropout.probability == model.encoder.input.dropout.probability == 0.5


@pytest.mark.long(0.1)
def test_a_model_without_memory_loads_no_compiler() -> None:
    """Which would take two seconds whenever a model is loaded."""
    code = "import sys; from regard.config import GptSection; from regard.models.presets import meta_model"
    code += "; meta_model(GptSection(layers=1), 10)"
    done = subprocess.run([sys.executable, "-c", code + "; assert 'torch._dynamo' not in sys.modules"], check=False)
    assert done.returncode == 0
