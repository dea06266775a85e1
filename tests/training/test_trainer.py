"""``fit``: what it does at a step, at a validation, with a full disk, with bad numbers, and when asked to stop."""

import errno
import json
import math
import shutil
from dataclasses import replace
from itertools import chain, repeat

import pytest
import torch
from torch.nn import functional

from regard.data.batches.batch import Position
from regard.nn.dropout import reseed
from regard.system.errors import Diverged, RegardError, Stopped
from regard.system.keys import key
from regard.training.checkpoints import checkpoint
from regard.training.checkpoints.checkpoint import load, whole
from regard.training.trainer import Hooks, fit
from tests.refusals import refused
from tests.training.toy import Bigram, Corpus, Fast, Full, Play, StopAt, Toy, lines, log, recipe


def saved_steps(play):
    return [int(path.name[5:]) for path in whole(play.output / "training" / "checkpoints")]


def snapshots(play):
    return [int(path.name[5:]) for path in whole(play.output / "training" / "snapshots")]


def reference(steps, accumulate=1, clip=1.0, rate=0.02):
    """The same in plain torch: loss over the tokens of the step, keyed dropout, clipping, Adam by parameter."""
    model, corpus, position, losses = Bigram(), Corpus(), Position(), []
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, steps + 1):
        total, tokens = 0.0, 0
        for micro in range(accumulate):
            batch, position = corpus.batch(position), corpus.after(position)
            reseed(key(9, "dropout", step, micro))
            tokens += sum(int(length) for length in batch.target.lengths_B)
            logits_TV = model(torch.from_numpy(batch.target.ids_T))
            labels_T, weight_T = torch.from_numpy(batch.labels_T), torch.from_numpy(batch.weight_T)
            total = total + (functional.cross_entropy(logits_TV, labels_T, reduction="none") * weight_T).sum()
        loss = total / tokens
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for group in adam.param_groups:
            warm = min(1.0, step / min(4, steps // 10)) if steps >= 10 else 1.0
            group["lr"] = rate * warm * (1 - max(0, step - steps // 10) / (steps - steps // 10))
        adam.step()
        losses.append(float(loss.detach()))
    return model, losses


@pytest.mark.parametrize("accumulate", [1, 3])
def test_as_plain_torch(tmp_path, accumulate):
    play = Play(tmp_path / "m", recipe(schedule="linear", steps=20, warmup=2, accumulate=accumulate, clip=0.5))
    play.fit()
    model, losses = reference(20, accumulate, clip=0.5)
    assert [line["loss"] for line in log(play, "step")] == pytest.approx(losses, rel=1e-4)
    for (name, wanted), found in zip(model.named_parameters(), play.objective.model.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=2e-4, msg=name)
    assert losses[-1] < 0.9 * losses[0]


def test_what_a_step_logs(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=60, validate_every=30))
    play.fit()
    steps = log(play, "step")
    assert [line["step"] for line in steps] == list(range(1, 61))
    for line in steps:
        assert {"seconds", "loss", "nll", "rate", "tokens", "tokens_per_second", "fill", "norm"} <= set(line)
        assert 0 < line["fill"] <= 1
        assert ("norms" in line) == (line["step"] == 50)
    norms = steps[49]["norms"]
    assert math.hypot(*norms.values()) == pytest.approx(steps[49]["norm"], rel=1e-5)
    assert [line["step"] for line in log(play, "valid")] == [30, 60]
    assert log(play, "sample")[0].keys() == {"kind", "step", "source", "reference", "hypothesis"}
    assert log(play, "start")[0]["steps"] == 60


def test_the_last_step_validates_saves_and_snapshots_and_finished_is_finished(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=23, validate_every=10))
    summary = play.fit()
    assert summary.step == 23
    assert [line["step"] for line in log(play, "valid")] == [10, 20, 23]
    assert saved_steps(play)[-1] == 23
    assert snapshots(play) == [1, 5, 12]
    assert json.loads((whole(play.output / "training" / "checkpoints")[-1] / "state.json").read_text())["finished"]
    before, again = play.ended(), play.fit()
    assert play.corpus.drawn == []
    assert again.step == 23
    assert play.ended().weights == before.weights


def test_snapshots_take_three_times_the_weights_at_most_however_often_a_run_is_continued(tmp_path):
    output, kept = tmp_path / "m", []
    for steps in (10, 40, 100):
        play = Play(output, recipe(steps=steps, validate_every=10))
        play.fit()
        kept.append(snapshots(play))
    assert kept == [[1, 2, 5], [1, 5, 20], [1, 20, 50]]
    size = sum(path.stat().st_size for path in (output / "training" / "snapshots").rglob("*.safetensors"))
    assert size <= 3 * (output / "model.safetensors").stat().st_size


def test_a_run_whose_snapshots_an_earlier_regard_kept_goes_on(tmp_path):
    """They were at 1, 2, 5, 10, 20, 50 and 100 %; what is removed are those between, once another is due."""
    play = Play(tmp_path / "m", recipe(steps=20, validate_every=2))
    with pytest.raises(Stopped):
        play.fit(stop=StopAt(6))
    folder = play.output / "training" / "snapshots"
    for step in (2, 3):
        shutil.copytree(folder / "step-000001", folder / checkpoint.name(step))
    (folder / f"step-000003.removing-{'0' * 32}").mkdir()
    assert snapshots(play) == [1, 2, 3, 4]
    play.fit()
    assert snapshots(play) == [1, 4, 10]
    assert len(list(folder.iterdir())) == 3


def scored(*bleu):
    """Validations whose BLEU is given and whose loss says nothing."""
    return lambda n, validation: replace(validation, loss=1.0, scores={"bleu": bleu[n - 1]})


def test_the_best_is_saved_kept_and_checkpointed(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=20, validate_every=2, select="bleu", keep=2))
    toy = Toy(validate=scored(1.0, 5.0, 4.0, 4.0, 3.0, 2.0, 4.9, 5.0, 1.0, 1.0))
    summary = play.fit(objective=toy)
    assert (summary.best_step, summary.best_value) == (4, 5.0)
    assert [line["best"] for line in log(play, "valid")] == [True, True] + [False] * 8
    assert saved_steps(play) == [4, 18, 20]
    model = load(play.output / "model.safetensors")
    best = load(play.output / "training" / "checkpoints" / "step-000004" / "weights.safetensors")
    assert all(torch.equal(model[name], best[name]) for name in best)


def test_a_score_that_is_always_made_decides_from_the_start_unless_its_model_cannot_be_written(tmp_path):
    failing = chain([True], repeat(False))
    full = Full(lambda path: "model.safetensors" in path and next(failing))
    for name, files, best in (("whole", Fast(), (2, 9.0)), ("full", full, (8, 3.0))):
        play = Play(tmp_path / name, recipe(steps=8, validate_every=2, select="auto"))
        summary = play.fit(files, objective=Toy(validate=scored(9.0, 1.0, 2.0, 3.0)))
        assert (summary.best_step, summary.best_value) == best
        assert [line["best"] for line in log(play, "valid")] == [name == "whole", *[name == "full"] * 3]


def test_the_averaged_weights_are_the_ones_validated_and_saved(tmp_path):
    play, seen = Play(tmp_path / "m", recipe(steps=4, validate_every=2, ema=0.5, select="last")), []
    toy = Toy(validate=lambda n, v: seen.append(toy.model.embedding.weight.clone()) or v)
    play.fit(objective=toy)
    folder = play.output / "training" / "checkpoints" / "step-000004"
    averages = load(folder / "ema.safetensors")
    raw = load(folder / "weights.safetensors")
    model = load(play.output / "model.safetensors")
    snapshot = load(play.output / "training" / "snapshots" / "step-000002" / "weights.safetensors")
    for found in (seen[1], model["embedding.weight"]):
        assert torch.equal(found, averages["embedding.weight"])
    assert torch.equal(snapshot["embedding.weight"], seen[0])
    assert not torch.equal(raw["embedding.weight"], averages["embedding.weight"])
    assert torch.equal(toy.model.embedding.weight, raw["embedding.weight"])


def test_validation_is_in_evaluation_mode_and_text_is_made_when_it_counts(tmp_path):
    play, modes, generated = Play(tmp_path / "m", recipe(steps=20, validate_every=5)), [], []
    toy = Toy()
    inner = toy.validate

    def validate(generate, world):
        modes.append((toy.model.training, torch.is_grad_enabled()))
        generated.append(generate)
        return inner(generate, world)

    toy.validate = validate
    play.fit(objective=toy)
    assert modes == [(False, False)] * 4
    assert generated == [False, False, True, True]
    assert toy.model.training


def test_patience(tmp_path):
    play = Play(tmp_path / "m", recipe(schedule="noam", steps=None, validate_every=2, patience=3, select="bleu"))
    summary = play.fit(objective=Toy(validate=scored(1.0, 2.0, 1.0, 2.0, 1.9, 9.0)))
    assert summary.step == 10
    assert "no better" in summary.reason
    assert saved_steps(play)[-1] == 10
    assert play.fit().step == 10


def at(*numbers):
    """Poison the batches of these steps (one batch a step)."""
    corpus, position, chosen = Corpus(), Position(), set()
    for number in range(1, max(numbers) + 1):
        if number in numbers:
            chosen.add(position)
        position = corpus.after(position)
    return lambda position: position in chosen


def test_a_gradient_that_is_not_finite_is_skipped_and_counted(tmp_path):
    """The weights stay as they were."""
    play = Play(tmp_path / "m", recipe(steps=5, validate_every=5, schedule="noam"), poison=at(4, 5))
    other = Play(tmp_path / "other", recipe(steps=3, validate_every=5, schedule="noam"))
    assert (play.fit().skipped, other.fit().skipped) == (2, 0)
    steps = log(play, "step")
    found = [(line["skipped"], line["loss"] is None, line["norm"] is None) for line in steps[2:]]
    assert found == [(False,) * 3, (True,) * 3, (True,) * 3]
    assert any("skipped" in event for event in play.reporter.events)
    moments = load(play.output / "training" / "checkpoints" / "step-000005" / "optimiser.safetensors")
    assert int(moments["updates"]) == 3
    assert torch.equal(*(run.objective.model.embedding.weight for run in (play, other)))


def test_a_skipped_update_leaves_the_buffers(tmp_path):
    """A pass changes running averages, and a bad batch would poison them; two of three batches of a step are good."""
    bad = Position(0, 1, 1)
    play = Play(tmp_path / "m", recipe(steps=4, accumulate=3, validate_every=4), poison=lambda place: place == bad)
    toy = Toy()
    forward = toy.model.forward

    def averaging(ids_T):
        logits_TV = forward(ids_T)
        if toy.model.training:  # as batch norm does
            toy.model.seen.lerp_(logits_TV.detach().mean() * toy.nan, 0.1)
        return logits_TV

    toy.model.forward, toy.nan = averaging, 1.0
    losses = toy._losses

    def poisoned(batch):
        toy.nan = float(batch.weight_T.max())
        return losses(batch)

    toy._losses = poisoned
    before, stop = {}, StopAt()
    stop.reporter.on_step = lambda metrics: before.setdefault(metrics.step, toy.model.seen.clone())
    summary = play.fit(stop=stop, objective=toy)
    assert summary.skipped == 1
    assert [line["step"] for line in log(play, "step") if line["skipped"]] == [2]
    assert torch.equal(before[2], before[1])
    assert not torch.equal(before[3], before[2])
    assert torch.isfinite(before[4]).all()


@pytest.mark.parametrize(("stops", "saved"), [((), 5), ((9,), 9)])
def test_diverged_where_resuming_remembers_what_was_skipped(tmp_path, stops, saved):
    play = Play(tmp_path / "m", recipe(steps=40, max_skipped=4), poison=at(7, 8, 9, 10))
    for stop in stops:
        with pytest.raises(Stopped):
            play.fit(stop=StopAt(stop))
    with pytest.raises(Diverged) as caught:
        play.fit()
    assert caught.value.exit_code == 76
    assert log(play, "step")[-1]["step"] == 10
    assert saved_steps(play)[-1] == saved


@pytest.mark.one_of(4)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("part", ["weights.safetensors", "state.json", "manifest.json", "latest"])
def test_a_full_disk_costs_a_save_not_the_run(tmp_path, code, part):
    play, whole_run = Play(tmp_path / "m"), Play(tmp_path / "whole")

    def bad(path):
        return "/checkpoints/" in path and part in path and ("step-000015" in path or "step-000020" in path)

    if part == "latest":
        hits = chain([False, False, True, True], repeat(False))

        def bad(path):
            return "latest" in path and next(hits)

    play.fit(Full(bad, code))
    whole_run.fit()
    assert play.ended().weights == whole_run.ended().weights
    assert sum("saving at step" in event for event in play.reporter.events) >= 2
    assert not list((play.output / "training" / "checkpoints").glob("*.partial-*"))


def test_three_failed_saves_end_it_with_the_old_ones_whole(tmp_path):
    play = Play(tmp_path / "m")
    late = ("step-000015", "step-000020", "step-000025", "step-000030")
    with refused(RegardError, "training"):
        play.fit(Full(lambda path: any(name in path for name in late) and "checkpoints" in path))
    assert log(play, "step")[-1]["step"] == 25
    assert saved_steps(play) == [5, 10]
    with refused(RegardError, "training"):  # the last save must succeed
        play.fit(Full(lambda path: "checkpoints/step-000040" in path))
    play.fit()
    whole_run = Play(tmp_path / "whole")
    whole_run.fit()
    assert play.ended().weights == whole_run.ended().weights
    assert play.ended().model == whole_run.ended().model


def test_asked_to_stop_before_the_first_step(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=5))
    with pytest.raises(Stopped) as caught:
        play.fit(stop=StopAt(0))
    assert caught.value.exit_code == 75
    assert "rerun the same command" in str(caught.value)
    assert play.corpus.drawn == []
    assert saved_steps(play) == [0]
    assert play.fit(stop=StopAt(5)).step == 5  # asked to stop behind the last step it is finished


def test_a_spike_is_said(tmp_path):
    play = Play(tmp_path / "m", recipe(steps=90, validate_every=90, schedule="noam", rate=0.01, clip=0.0))
    toy = Toy()
    inner, count = toy.loss, iter(range(1, 91))

    def loss(batch):
        found = inner(batch)
        return replace(found, total=found.total * (50.0 if next(count) in (70, 71, 72, 73) else 1.0))

    toy.loss = loss
    play.fit(objective=toy)
    said = [event for event in play.reporter.events if "loss spike" in event]
    assert said[0].startswith("loss spike at step 72")
    assert "step 72" in log(play, "event")[0]["text"]


def test_tensorboard_has_the_same_numbers(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fit(Toy(), Corpus(), recipe(steps=6, validate_every=3), tmp_path, Hooks(files=Fast(), track=True))
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    wanted = {line["step"]: line["loss"] for line in lines(tmp_path / "metrics.jsonl") if line["kind"] == "step"}
    assert {e.step: e.value for e in events.Scalars("loss")} == pytest.approx(wanted, rel=1e-6)
    assert [e.step for e in events.Scalars("valid/loss")] == [3, 6]


@pytest.mark.parametrize("settings", [{"validate_every": 1}, {"save_every": 1, "ema": 0.9}, {}])
def test_weights_that_are_not_finite_end_it_before_they_are_saved(tmp_path, settings):
    play = Play(tmp_path / "m", recipe(rate=1e300, warmup=0, **settings))
    with refused(Diverged, "step 1"):
        play.fit(stop=None if settings else StopAt(1))  # asked to stop it saves nothing either
    assert saved_steps(play) == []
    assert play.objective.validations == 0
    assert any("not finite" in line["text"] for line in log(play, "event"))


@pytest.mark.parametrize(("saved", "step"), [([5], "step 10"), ([], "step 3")])
def test_a_validation_without_a_finite_loss_and_buffers_that_are_not_finite_end_it(tmp_path, saved, step):
    play = Play(tmp_path / "m", recipe(steps=40) if saved else recipe(steps=6, validate_every=3))
    toy = Toy(validate=lambda n, found: found if n == 1 else replace(found, loss=math.nan))
    if not saved:
        toy.model.seen.fill_(math.nan)
    with refused(Diverged, step):
        play.fit(objective=toy)
    assert saved_steps(play) == saved
