"""A translator's loss and validation, against the same numbers made sentence by sentence."""

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import Decoding, Recipe, recipe_from
from regard.data.corpora.pairs import open_pairs
from regard.data.prepare.folder import PreparedPairs
from regard.models.build import transformer
from regard.models.inputs import pairs
from regard.nn import ops
from regard.tasks.metrics.bleu import score
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.training import MAX_EXTRA, SAMPLES, TranslationTraining
from regard.tasks.translation.translator import Translation
from regard.text.confidence import confidence_content
from tests.data.batches.packing import pack
from tests.data.prepare.preparing import prepare_pairs
from tests.tasks.small_tasks import evenly, shares

SMOOTHING = 0.2
RECIPE = recipe_from(
    {
        "text": {"vocabulary": 300},
        "data": {"validation": 12, "max_tokens": 32},
        "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 16, "heads": 2, "dropout": 0.0},
        "training": {"tokens": 64, "label_smoothing": SMOOTHING, "validation_sentences": 7},
        "decoding": {"max_extra": 4},
    }
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedPairs:
    folder = tmp_path_factory.mktemp("teaching")
    for side in ("en", "de"):
        (folder / f"a.{side}").write_text("".join(f"{'a b ' * (n % 4)}{side} {n}\n" for n in range(150)))
    return prepare_pairs([open_pairs(folder / "a.en", folder / "a.de")], RECIPE, folder / "data")


def made(prepared: PreparedPairs, training_path: ops.Path = "exact", recipe: Recipe = RECIPE) -> TranslationTraining:
    both = prepared.vocabularies
    model = transformer(recipe.model, both.source.size, both.target.size, 3)
    paths = ProductPaths(training_path, "exact")
    return TranslationTraining(Translation(recipe, both, model), prepared, paths)


@torch.no_grad()
def alone(teaching: TranslationTraining, source: str, target: str) -> tuple[float, float, int]:
    """Smoothed loss, negative log-likelihood and tokens of one pair, from the log-probabilities of every piece."""
    both = teaching.task.vocabularies
    ids = [np.append(v.ids_batch([text])[0], v.end) for v, text in ((both.source, source), (both.target, target))]
    hidden_TD = teaching.model(pairs(pack([ids[0]], [ids[1]], both.target.start)))
    log_TV = (hidden_TD @ teaching.model.output.weight[: both.target.size].T).log_softmax(-1)
    nll_T = -log_TV[torch.arange(len(ids[1])), torch.as_tensor(ids[1])]
    smoothed_T = (1 - SMOOTHING) * nll_T - SMOOTHING * log_TV.mean(-1)
    return float(smoothed_T.sum()), float(nll_T.sum()), len(ids[1])


def test_the_loss_of_batches_is_that_of_their_sentences(prepared: PreparedPairs) -> None:
    teaching = made(prepared)
    each = [alone(teaching, source, target) for source, target in prepared.validation_pairs()]
    smoothed, nll, tokens = (sum(column) for column in zip(*each, strict=True))
    teaching.model.train()
    batches = teaching.batches.validation
    assert len(batches) > 1
    losses = [teaching.loss(batch) for batch in batches]
    assert sum(loss.count for loss in losses) == tokens
    assert sum(float(loss.total.detach()) for loss in losses) == pytest.approx(smoothed, rel=1e-5)
    assert sum(float(loss.nll) for loss in losses) == pytest.approx(nll, rel=1e-5)
    losses[0].total.backward()
    assert all(parameter.grad is not None for parameter in teaching.model.parameters())
    teaching.model.eval()
    assert teaching.validate(False).loss == pytest.approx(nll / tokens, rel=1e-5)


def test_a_validation_translates_the_first_sentences_greedily(prepared: PreparedPairs) -> None:
    teaching = made(prepared)
    teaching.model.eval()
    without, found = teaching.validate(False), teaching.validate(True)
    assert without.scores == {}
    assert without.loss == found.loss
    texts = prepared.validation_pairs()[:7]
    best = [h[0] for h in teaching.task.nbest([s for s, _ in texts], 1, beam=1, max_extra=MAX_EXTRA)]
    wanted = score([h.text for h in best], [reference for _, reference in texts])
    assert found.scores == {"bleu": wanted.bleu, "chrf": wanted.chrf}
    held = len(prepared.validation_pairs())
    assert found.searched == f"{'all' if held == 7 else '7 of the'} {held} validation pairs, greedy"
    assert [(s.source, s.reference, s.hypothesis) for s in found.samples] == [
        (*pair, h.text) for pair, h in list(zip(texts, best, strict=True))[:SAMPLES]
    ]
    assert without.samples == found.samples


def test_the_parts_of_a_validation_can_be_tried(prepared: PreparedPairs) -> None:
    """Of text until as much is written as the references have."""
    teaching = made(prepared)
    assert shares(teaching) == evenly(len(teaching.batches.validation))
    target = prepared.vocabularies.target
    expected = sum(len(target.encode(text).ids) + 1 for _, text in prepared.validation_pairs()[:7])
    told = shares(teaching, True)
    assert told[:3] == [0.0, 7 / expected, 14 / expected]
    assert told == sorted(told)
    held = sum(len(target.encode(text).ids) + 1 for _, text in prepared.validation_pairs())
    assert teaching.final_seconds(2.0, 5.0) == pytest.approx(3.0 * held / expected * 5 * 1.5)
    greedy = made(prepared, recipe=RECIPE.model_copy(update={"decoding": Decoding(beam=1)}))
    assert greedy.final_seconds(2.0, 5.0) == pytest.approx(3.0 * held / expected)


def test_a_trial_that_is_broken_off_leaves_the_model_as_it_was(prepared: PreparedPairs) -> None:
    teaching = made(prepared, "bf16")
    before = {name: weight.clone() for name, weight in teaching.model.state_dict().items()}

    def enough(share: float) -> None:
        if share:
            raise InterruptedError

    for generate in (False, True):
        teaching.model.eval()
        with pytest.raises(InterruptedError):
            teaching.trial(generate, enough)
    assert {m.product for m in teaching.model.modules() if hasattr(m, "product")} == {"bf16"}
    assert all(torch.equal(weight, before[name]) for name, weight in teaching.model.state_dict().items())


def test_of_a_model_that_knows_no_numbers_no_text_is_tried(prepared: PreparedPairs) -> None:
    teaching = made(prepared)
    with torch.no_grad():
        teaching.model.output.weight.fill_(float("nan"))
    assert shares(teaching)[-1] == 1
    assert shares(teaching, True) == [0.0]


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("positions", "extra"), [(37, 4), (48, 15), (49, 16), (512, 16)])
def test_a_validation_keeps_to_the_positions_that_are_learned(
    prepared: PreparedPairs, positions: int, extra: int
) -> None:
    """Sources are as long as ``data.max_tokens``, and an untaught model does not know when to stop."""
    section = RECIPE.model.model_copy(update={"positions": "learned", "max_positions": positions})
    recipe = recipe_from(RECIPE.model_copy(update={"model": section}).model_dump())
    teaching = made(prepared, recipe=recipe)
    source = prepared.vocabularies.source.decode([5] * 31)
    assert len(prepared.vocabularies.source.encode(source).ids) + 1 == 32
    target = prepared.validation_target
    held: Any = SimpleNamespace(validation_pairs=lambda: [(source, "a")] * 7, validation_target=target)
    held.validation_source, held.held_directions = SimpleNamespace(count=7), [None] * 7
    teaching.prepared = held
    teaching.model.eval()
    assert len(teaching.validate(True).samples) == SAMPLES
    assert [len(one.tokens) for one in teaching._greedy(teaching._places(True))] == [32 + extra] * 7
    assert made(prepared).max_extra == MAX_EXTRA


def test_validating_is_in_full_precision_and_training_is_not(prepared: PreparedPairs) -> None:
    low, full = made(prepared, "bf16"), made(prepared)
    batch = full.batches.validation[0]
    assert float(low.loss(batch).nll) != float(full.loss(batch).nll)
    for teaching in (low, full):
        teaching.model.eval()
    assert low.validate(True) == full.validate(True)
    assert {m.product for m in low.model.modules() if hasattr(m, "product")} == {"bf16"}


@torch.no_grad()
def test_the_confidence_that_one_output_in_a_hundred_lacks_becomes_an_asset(prepared: PreparedPairs) -> None:
    """Against probabilities by teacher forcing of what was written."""
    teaching = made(prepared)
    assert teaching.task.assets.doubted_below is None
    pairs_held = [(f"{'a b ' * (n % 5)}{n}", f"de {n}") for n in range(120)]
    held: Any = SimpleNamespace(validation_pairs=lambda: pairs_held, held_directions=[None] * 120, held_of=[])
    held.validation_source = SimpleNamespace(count=len(pairs_held))
    teaching.prepared, task = held, teaching.task
    task.model.eval()
    lines = teaching.finish(task, lambda: False)
    wanted = score(
        task.translate([source for source, _ in pairs_held]), [text for _, text in pairs_held], samples=1
    ).bleu
    assert lines[0].startswith(f"* BLEU {wanted:.2f} (beam 5; `nrefs:1")
    assert re.match(r"\* chrF \d+\.\d\d \(beam 5; `nrefs:1.*`; 95 %: \d+\.\d to \d+\.\d\)", lines[1])
    assert lines[2].startswith("* outputs: empty ")
    assert [line.splitlines()[1].split("|")[1].strip() for line in lines[3:]] == [
        "words of the source",
        "its rarest word, times in training",
    ]
    found = [best for best, *_ in task.nbest([source for source, _ in pairs_held])]
    both, confidences = prepared.vocabularies, []
    for (source, _), one in zip(pairs_held, found, strict=True):
        read, said = np.append(both.source.ids_batch([source])[0], both.source.end), [*one.tokens]
        ids = np.array([*said, both.target.end] if one.finished else said, np.int64)
        hidden_TD = task.model(pairs(pack([read], [ids], both.target.start)))
        log_TV = (hidden_TD @ task.model.output.weight[: both.target.size].T).log_softmax(-1)
        confidences.append(math.exp(float(log_TV[torch.arange(len(ids)), torch.as_tensor(ids)].mean())))
    assert [one.confidence for one in found] == pytest.approx(confidences, rel=1e-4)
    below = task.assets.doubted_below
    assert below == pytest.approx(np.quantile(confidences, 0.01), rel=1e-3)
    assert [one.unsure for one in found] == [one.confidence < below for one in found]
    assert sum(one.unsure for one in found) == 2
    assert task.assets.calibration.guard
    assert task.assets.contents["confidence.json"] == confidence_content(below, task.assets.calibration)
