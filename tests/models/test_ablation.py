"""What a model does without something equals what a model does whose weights were edited so."""

import copy

import pytest
import torch

from regard.config import BertSection, GptSection, RnnSection, VitSection
from regard.models.ablation import Ablations, Head
from regard.models.build import gpt, rnn
from regard.models.decoding.transformer import TransformerStepper
from regard.models.inputs import tokens
from regard.models.transformer import Transformer
from regard.system.errors import UsageError
from tests.models.small_models import PIECES, SIZES, assert_near, packed, section, sentences, small, some_pairs, stir
from tests.refusals import refused

LENGTHS = [(3, 4), (5, 2)]


def edited(model: Transformer, off: Head) -> Transformer:
    """The model with the columns of a head's share of the output matrix at zero."""
    found = copy.deepcopy(model)
    layers = found.encoder.layers if off.kind == "encoder" else found.decoder.layers
    attention = layers[off.layer - 1].cross if off.kind == "cross" else layers[off.layer - 1].attention
    size = attention.output.weight.shape[1] // attention.heads
    with torch.no_grad():
        attention.output.weight[:, (off.head - 1) * size : off.head * size] = 0
    return found


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("kind", "cell"), [("encoder", None), ("decoder", None), ("cross", None), ("encoder", "ssru"), ("cross", "ssru")]
)
@pytest.mark.parametrize(("layer", "head"), [(1, 1), (2, 3)])
def test_a_head_that_is_off_says_nothing(kind: str, cell: str | None, layer: int, head: int) -> None:
    off, chosen = Head(kind, layer, head), section(decoder_cell=cell)
    model, given, tokens_N = small(chosen), some_pairs(LENGTHS), torch.tensor([PIECES, PIECES]).numpy()
    with Ablations(off=(off,)).apply(chosen):
        changed_TD = model(given)
        step = TransformerStepper(model)
        said = step.step(step.start(sentences([3, 5])), tokens_N)[1].all()
    other = edited(model, off)
    assert_near(changed_TD, other(given), 1e-12)
    step = TransformerStepper(other)
    assert_near(torch.tensor(said), torch.tensor(step.step(step.start(sentences([3, 5])), tokens_N)[1].all()), 1e-9)
    assert not torch.allclose(changed_TD, model(given))


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "relative", "alibi", "rotary"])
def test_without_positions_the_encoder_commutes_with_permutation(kind: str) -> None:
    chosen = section(positions=kind)
    model, order = small(chosen), [4, 2, 0, 3, 1]
    (sentence,) = sentences([5])
    with Ablations(positions=False).apply(chosen):
        plain_TD = model.encoder(tokens(packed([sentence])))
        moved_TD = model.encoder(tokens(packed([sentence[order]])))
    assert_near(moved_TD, plain_TD[order], 1e-12)
    assert not torch.allclose(
        model.encoder(tokens(packed([sentence[order]]))), model.encoder(tokens(packed([sentence])))[order]
    )


@pytest.mark.parametrize(
    ("off", "field", "value"), [("positions", "positions", "none"), ("scaling", "scale_scores", False)]
)
def test_without_a_part_it_is_a_model_that_has_none(off: str, field: str, value: object) -> None:
    model, given, other = small(), some_pairs(LENGTHS), small(section(**{field: value}))
    other.load_state_dict(model.state_dict())
    with Ablations(**{off: False}).apply(section()):
        changed_TD = model(given)
    assert_near(changed_TD, other(given), 1e-12)


def test_what_does_not_scale_cannot_do_without() -> None:
    with refused(UsageError, "scaling"), Ablations(scaling=False).apply(section(scale_scores=False)):
        pass


def test_without_the_mask_a_language_model_reads_both_ways() -> None:
    sizes = {name: SIZES[name] for name in ("d_model", "d_ff", "heads", "max_positions", "dropout")}
    chosen = GptSection(layers=2, **sizes)
    model = gpt(chosen, PIECES, 7).double().eval()
    stir(model)
    (sentence,) = sentences([5])
    other = sentence.copy()
    other[-1] = 3
    first = [model(tokens(packed([one])))[:4] for one in (sentence, other)]
    assert torch.equal(*first)
    with Ablations(mask=False).apply(chosen):
        first = [model(tokens(packed([one])))[:4] for one in (sentence, other)]
    assert not torch.allclose(*first)


def test_heads_that_are_not_there() -> None:
    assert section().attention == {"encoder": (2, 3), "decoder": (2, 3), "cross": (2, 3)}
    student = section(decoder_cell="ssru")
    assert student.attention == {"encoder": (2, 3), "cross": (2, 3)}
    assert BertSection(layers=4, heads=12).attention == {"encoder": (4, 12)}
    assert VitSection(layers=3, heads=12).attention == {"encoder": (3, 12)}
    assert GptSection(layers=5, heads=12).attention == {"decoder": (5, 12)}
    assert RnnSection().attention == {"cross": (1, 1)}
    assert RnnSection(score="none").attention == {}
    for chosen, off, said in (
        (section(), Head("encoder", 3, 1), "3"),
        (section(), Head("encoder", 1, 4), "4"),
        (section(), Head("cross", 0, 1), "0"),
        (GptSection(), Head("cross", 1, 1), "decoder"),
        (student, Head("decoder", 1, 1), "no decoder attention, but encoder and cross"),
        (RnnSection(score="none"), Head("cross", 1, 1), "none"),
    ):
        with refused(UsageError, "head", said), Ablations(off=(off,)).apply(chosen):
            pass


def test_a_recurrent_model_without_its_attention() -> None:
    chosen = RnnSection(d_model=12, score="scaled", dropout=0.0)
    model = rnn(chosen, PIECES, PIECES, 7).double().eval()
    given = some_pairs(LENGTHS)
    with torch.no_grad():
        other = copy.deepcopy(model)
        other.decoder.cross.output.weight[:, :12] = 0
        with Ablations(off=(Head("cross", 1, 1),)).apply(chosen):
            changed_TD = model(given)
        assert_near(changed_TD, other(given), 1e-12)
        with Ablations(scaling=False).apply(chosen):
            assert not torch.allclose(model(given), changed_TD)
