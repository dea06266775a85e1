"""A model without an idea is the whole model with that idea undone by hand: its weights edited, its parts called."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from regard import load
from regard.models.ablation import Ablations
from regard.models.build import transformer
from regard.models.captured_attention import weights_of
from regard.models.decoding.transformer import TransformerStepper
from regard.nn.layout import Layout
from regard.runs.demo.without import ABSENT
from regard.runs.pack import pack
from regard.system.errors import UsageError
from regard.tasks.engine import has_engine, why_torch
from tests.models.small_models import PIECES, assert_near, section, sentences, small, some_pairs
from tests.refusals import refused
from tests.tasks.small_tasks import put, translator

LENGTHS = [(3, 4), (5, 2)]
PLACES = ["post", "pre"]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("idea", "off"), [("scale", "scaling"), ("mask", "mask")])
def test_scores_that_are_not_divided_and_a_mask_that_is_not_there(idea: str, off: str, place: str) -> None:
    model, given, other = (
        small(section(norm_place=place)),
        some_pairs(LENGTHS),
        small(section(norm_place=place, without=idea)),
    )
    with Ablations(**{off: False}).apply(section(norm_place=place)):
        changed_TD = model.decoder(given.target, model.encoder(given.source), given.source)
    if idea == "mask":  # the ablation opens the decoder alone, which is all there is to open
        assert_near(other.encoder(given.source), model.encoder(given.source), 1e-12)
    assert_near(other(given), changed_TD, 1e-12)


def test_what_is_not_divided_begins_with_the_same_weights() -> None:
    whole, other = (transformer(section(without=idea), PIECES, PIECES, key=3) for idea in (None, "scale"))
    assert all(torch.equal(one, two) for one, two in zip(whole.parameters(), other.parameters(), strict=True))
    assert section(without="scale").divisor_of("cross") == 1.0


@pytest.mark.parametrize("place", PLACES)
def test_a_feed_forward_that_adds_nothing(place: str) -> None:
    whole, other, given = (
        small(section(norm_place=place)),
        small(section(norm_place=place, without="feed-forward")),
        some_pairs(LENGTHS),
    )
    other.load_state_dict({name: value for name, value in whole.state_dict().items() if "feedforward" not in name})
    with torch.no_grad():
        for layer in [*whole.encoder.layers, *whole.decoder.layers]:
            layer.feedforward.outer.weight.zero_()
            layer.feedforward.outer.bias.zero_()
            if place == "post":  # the norm goes with its sub-layer
                layer.feedforward_residual.norm = torch.nn.Identity()
    assert_near(other(given), whole(given), 1e-12)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("idea", ["residual", "norm"])
def test_layers_without_connection_or_norm_are_those_by_hand(idea: str, place: str) -> None:
    model, given = small(section(norm_place=place, without=idea)), some_pairs(LENGTHS)
    sequences = given.source.sequences
    x_TD = model.encoder.input(given.source.content, sequences.positions_T, sequences.longest)
    for layer in model.encoder.layers:
        for part in ("attention", "feedforward"):
            norm = (lambda h_TD: h_TD) if idea == "norm" else getattr(layer, f"{part}_residual").norm
            h_TD = norm(x_TD) if place == "pre" else x_TD
            more = (h_TD, Layout(sequences, sequences)) if part == "attention" else ()
            h_TD = getattr(layer, part)(h_TD, *more, **({"causal": False} if more else {}))
            h_TD = h_TD if idea == "residual" else x_TD + h_TD
            x_TD = norm(h_TD) if place == "post" else h_TD
    x_TD = model.encoder.final(x_TD)
    assert_near(model.encoder(given.source), x_TD, 1e-12)


def test_attention_that_does_not_choose_is_a_mean() -> None:
    model = small(section(without="attention"))
    read, written = sentences([3, 5]), sentences([4, 2])
    found = weights_of(model, "transformer", [one.tolist() for one in read], [one.tolist() for one in written])
    for kind in ("encoder", "cross"):
        assert all((one == 1 / one.shape[-1]).all() for layer in found[kind] for one in layer)
    for layer in found["decoder"]:
        for one in layer:
            mean_QK = torch.ones(one.shape[1:]).tril() / torch.arange(1, one.shape[1] + 1)[:, None]
            assert_near(one.float(), mean_QK.expand_as(one), 1e-6)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("idea", [idea for idea in ABSENT if "without" in ABSENT[idea] and idea != "mask"])
def test_steps_of_search_are_the_pass_over_a_whole_target(idea: str) -> None:
    model = small(section(norm_place="pre", without=idea))
    given = some_pairs([(4, 5), (2, 5)])
    score_TV = model.scores(model(given))
    step = TransformerStepper(model)
    cache = step.start(np.split(given.source.ids_T.numpy(), [4]))
    for place, ids in enumerate(given.target.ids_T.reshape(2, 5).T.tolist()):
        cache, scores = step.step(cache, np.array(ids))
        wanted = score_TV[[place, 5 + place]].log_softmax(-1)
        assert_near(torch.tensor(scores.all()).log_softmax(-1), wanted, 1e-9)


def test_without_a_mask_a_target_is_read_both_ways_and_written_as_ever() -> None:
    model, whole, given = small(section(without="mask")), small(section()), some_pairs([(4, 5)])
    ids_T = given.target.ids_T
    later = ids_T.clone()
    later[-1] = 3 if ids_T[-1] != 3 else 4
    changed = model.decoder(
        type(given.target)(later, given.target.sequences), model.encoder(given.source), given.source
    )
    assert not torch.allclose(changed[0], model(given)[0])
    steps = [TransformerStepper(one) for one in (model, whole)]
    told = [one.step(one.start(sentences([3, 5])), np.array([PIECES, PIECES]))[1].all() for one in steps]
    assert_near(torch.tensor(told[0]), torch.tensor(told[1]), 1e-12)
    with pytest.raises(ValidationError, match="ssru has no mask"):
        section(without="mask", decoder_cell="ssru")


@pytest.mark.parametrize("idea", ["residual", "scale"])
def test_torch_computes_it_and_no_engine_does(idea: str, tmp_path) -> None:
    task = translator(without=idea)
    assert not has_engine(task.recipe)
    assert idea in why_torch(task.recipe)
    folder = put(tmp_path / "model", task)
    assert load(folder).translate(["a b", "b"], beam=1)
    with refused(UsageError, str(folder), f"without {idea}"):
        pack(folder)
