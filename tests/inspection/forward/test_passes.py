"""A cached pass equals the model's own forward pass, with and without ablations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward import outputs
from regard.inspection.forward.outputs import Candidate
from regard.inspection.forward.passes import bytes_of, forward_pass, greedy_output
from regard.inspection.forward.record import record, text_inputs
from regard.inspection.requests import AblationRequest, ImageRequest, Request, read
from regard.models.decoding import stepper
from regard.system.errors import RegardError, UsageError
from tests.inspection.forward.small_scenes import top_candidates
from tests.inspection.payloads import Number, TaskOf
from tests.refusals import refused
from tests.tasks.small_tasks import (
    EVERY,
    LABELS,
    PIXELS,
    SOURCE,
    SPANNED,
    TARGET,
    TEXTS,
    before,
    put,
    translator,
    viewer,
)

READERS = [name for name in EVERY if name != "viewer"]


def asked(number: int, name: str, **more: Any) -> Request:
    return replace(read(Request, {"model": number, **before(name)}), **more)


def alike(some: list[list[Candidate]], others: list[list[Candidate]]) -> None:
    """Heard attention is computed another way, and rounds otherwise; two as likely may change places."""
    for these, those in zip(some, others, strict=True):
        ranked = [[one.probability for one in each] for each in (these, those)]
        assert ranked[0] == pytest.approx(ranked[1], rel=1e-4)
        odds = {one.id: one.probability for one in those}
        assert [odds.get(one.id, ranked[1][-1]) for one in these] == pytest.approx(ranked[0], rel=1e-4)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", READERS)
def test_weights_and_candidates_are_those_of_a_record(models: Models, number: Number, task: TaskOf, name: str) -> None:
    target = {"translator": TARGET, "recurrent": TARGET, "spanner": "<extra_0> cat"}.get(name)
    found = forward_pass(models, asked(number(name), name, target=target))
    wanted = record(task(name), TEXTS.get(name, SOURCE), target)
    assert (found.record.source, found.record.target_text) == (wanted.source, wanted.target_text)
    assert list(found.record.weights) == list(wanted.weights)
    for kind, layers in wanted.weights.items():
        for one, other in zip(found.record.weights[kind], layers, strict=True):
            np.testing.assert_array_equal(one, other)
    if found.said is not None:
        alike(found.said, top_candidates(text_inputs(task(name), TEXTS.get(name, SOURCE), target)))


@pytest.mark.parametrize("name", ["translator", "speaker"])
def test_one_pass_is_enough(models: Models, number: Number, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Weights, candidates and probabilities are heard in one pass, all pieces said once, and nothing is made again."""
    task = models.load(number(name)).task
    runs, said, times = list[int](), outputs.piece_scores, list[int]()
    part, one = task.model.decoder, replace(asked(number(name), name), text="The animal was too tired.")
    one = replace(one, target="Die Straße") if name == "translator" else one
    forward = part.forward
    monkeypatch.setattr(part, "forward", lambda *given, **named: runs.append(1) or forward(*given, **named))
    monkeypatch.setattr(outputs, "piece_scores", lambda *given: times.append(1) or said(*given))
    first = forward_pass(models, one)
    assert (len(first.said or ()), len(runs), len(times)) == (len(first.probability or ()), 1, 1)
    assert forward_pass(models, one) is first
    assert forward_pass(models, replace(one, text="The animal was tired.")) is not first
    assert (len(runs), len(times)) == (2, 2)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["translator", "recurrent", "spanner", "asker"])
def test_probabilities_of_what_is_written(models: Models, number: Number, task: TaskOf, name: str) -> None:
    """By the model step by step, as it searches."""
    this = task(name)
    one = asked(number(name), name)
    seen = text_inputs(this, one.text, greedy_output(models, one))
    found = forward_pass(models, one)
    assert found.record.written == seen.written
    step = stepper(this.model)
    state, token, wanted = step.start([np.array(seen.read_ids)]), this.symbols.start, []
    for id in seen.written_ids:
        state, answer = step.step(state, np.array([token]))
        wanted.append(float(np.exp(answer.of(np.array([id]))[0])))
        token = id
    assert found.probability == pytest.approx(wanted, rel=1e-4)


def test_probabilities_of_a_text_that_goes_on(models: Models, number: Number, task: TaskOf) -> None:
    found = forward_pass(models, asked(number("speaker"), "speaker"))
    wanted = task("speaker").score(SOURCE, ended=False).log_probabilities
    assert found.probability is not None
    assert found.probability[0] is None
    assert np.log(found.probability[1:]) == pytest.approx(wanted, rel=1e-4)
    for name in ("filler", "classifier", "viewer"):
        assert forward_pass(models, asked(number(name), name)).probability is None


def test_forced_is_what_is_forced_and_the_output_what_the_model_writes(models: Models, number: Number) -> None:
    plain = asked(number("translator"), "translator")
    free, forced = forward_pass(models, plain), forward_pass(models, replace(plain, target=TARGET))
    assert free.output == forced.output == {"kind": "text", "text": free.record.target_text}
    assert forced.record.target_text == TARGET != free.record.target_text
    ids = text_inputs(models.load(number("translator")).task, SOURCE, TARGET).written_ids
    by_pieces = forward_pass(models, replace(plain, branch=ids))
    assert by_pieces.record.target == forced.record.target
    assert (forced.confidence, by_pieces.confidence) == (None, None)
    assert free.confidence is not None
    np.testing.assert_array_equal(by_pieces.record.weights["cross"][2], forced.record.weights["cross"][2])


def test_an_image(models: Models, number: Number, task: TaskOf) -> None:
    assert bytes_of(np.array([-0.1, 0.0, 0.5, 1.0, 1.2])).tolist() == [0, 0, 128, 255, 255]
    found = forward_pass(models, asked(number("viewer"), "viewer"))
    assert found.grid == (3, 2)
    assert found.pixels is not None
    np.testing.assert_array_equal(found.pixels[..., 0].ravel(), np.round(np.array(PIXELS) / 9 * 255))
    assert found.output["said"] == task("viewer").classify(np.array(PIXELS)).label
    assert [weight.shape for weight in found.record.weights["encoder"]] == [(3, 7, 7)] * 2
    assert found.label is None


def test_an_image_with_a_label(tmp_path: Path) -> None:
    (tmp_path / "images.csv").write_text("".join(f"{','.join(map(str, PIXELS))},{label}\n" for label in LABELS))
    models = Models([put(tmp_path / "model", viewer())], tmp_path / "images.csv")
    assert [forward_pass(models, Request(image=ImageRequest(number))).label for number in range(3)] == list(LABELS)
    assert forward_pass(models, Request(image=ImageRequest(pixels=tuple(PIXELS)))).label is None


def test_everything_can_be_taken_away_at_once(tmp_path: Any) -> None:
    models = Models([put(tmp_path, translator())])
    off = tuple((kind, layer, head) for kind in ("decoder", "cross") for layer in (1, 2, 3) for head in (1, 2, 3))
    one = Request(text=SOURCE, target=TARGET, changes=AblationRequest(off, positions=False, scaling=False, mask=False))
    found = forward_pass(models, one)
    upper = np.triu(found.record.weights["decoder"][0], 1)
    assert upper.any()
    # Nothing of the source arrives, nor of other tokens, nor of places: what is said depends on the token alone.
    other = forward_pass(models, replace(one, text="The street."))
    assert found.said == other.said


@pytest.mark.one_of(6)
@pytest.mark.parametrize("name", EVERY)
def test_every_model_does_without(models: Models, number: Number, name: str) -> None:
    one = asked(number(name), name)
    section = models.folder(number(name)).recipe.model
    kind, (layers, heads) = next(iter(section.attention.items()))
    for without in ({"off": ((kind, layers, heads),)}, {"positions": False}, {"mask": False}):
        forward_pass(models, replace(one, changes=AblationRequest(**without)))
    with refused(UsageError, "head"):
        forward_pass(models, replace(one, changes=AblationRequest(off=((kind, layers, heads + 1),))))
    if section.divisor == 1:
        with refused(UsageError, "scaling"):
            forward_pass(models, replace(one, changes=AblationRequest(scaling=False)))


def test_what_the_model_writes_is_searched_for_once(
    models: Models, number: Number, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Request(model=number("spanner"), text=SPANNED, changes=AblationRequest(off=(("cross", 1, 1),)))
    first = greedy_output(models, one)
    monkeypatch.setattr("regard.inspection.forward.passes.beam_search", None)
    assert greedy_output(models, replace(one, target="cat")) is first


def test_numbers_that_are_none_are_said(tmp_path: Any) -> None:
    task = translator()
    task.model.decoder.layers[2].feedforward.inner.weight.data.fill_(3e38)
    models = Models([put(tmp_path, task)])
    with refused(RegardError, "model"):
        forward_pass(models, Request(text=SOURCE, target=TARGET))
