"""What is chosen once is kept, but for what a person asks for anew."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.config import Recipe, Training, TransformerSection
from regard.data.batches.batch import Position
from regard.models import store
from regard.nn import ops
from regard.runs import plan
from regard.runs.plan import ResolvedSettings
from regard.runs.workers.group import WorkerGroup
from regard.system import kernels
from regard.system.errors import RegardError, UsageError
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.translator import Translation
from regard.training import budget
from regard.training import measure as measuring
from regard.training.checkpoints import resolved
from regard.training.checkpoints.files import Files
from regard.training.optim import FlatOptimiser, schedule
from regard.training.trainer import Hooks
from regard.training.update import MeasuredStep, MeasuredSteps, Update
from tests.refusals import refused
from tests.training.toy import Counting

CPU = torch.device("cpu")
CHOSEN = ResolvedSettings(12, 3, tokens=512, accumulate=2, product="bf16", exact="onednn", threads=1)
PLANNED = replace(CHOSEN, costs=(0.5, 0.25, 1.0, 0.125, 9.0))
REPLANNED = replace(PLANNED, steps=20, planned=12, reviewed=6)


def asking(**training: Any) -> Recipe:
    return Recipe(training=Training(**training))


def test_what_was_chosen_is_remembered(tmp_path) -> None:
    assert plan.load_settings(tmp_path, CPU) is None
    for chosen in (CHOSEN, replace(CHOSEN, steps=None), PLANNED, REPLANNED):
        resolved.write(tmp_path, chosen.fields(), Files())
        assert plan.load_settings(tmp_path, CPU) == chosen


def test_it_lies_over_the_recipe() -> None:
    section = CHOSEN.apply(asking(minutes=5, rate=0.5)).training
    assert (section.steps, section.validate_every, section.tokens, section.accumulate) == (12, 3, 512, 2)
    assert (section.minutes, section.rate) == (5, 0.5)


def test_what_came_of_planning_anew_is_gone_on_with() -> None:
    assert PLANNED.review is None
    assert REPLANNED.review == budget.Replanning(at=6, planned=12, steps=20)
    assert REPLANNED.override(asking(minutes=5), None) == REPLANNED
    assert REPLANNED.override(asking(steps=30), None) == replace(CHOSEN, steps=30)


@pytest.mark.parametrize(("path", "exact"), [("exact", "exact"), ("bf16", ops.full())])
def test_where_products_are_asked_for_nothing_is_timed(path, exact) -> None:
    """Nor are threads, on which the last bits depend too."""

    def teach(recipe, paths, again):
        raise AssertionError("nothing is to be timed")

    recipe, paths = asking(product=path), ProductPaths(path, exact)
    assert plan._choose_paths(recipe, teach, Hooks(), CPU) == (paths, None)
    assert plan._choose_threads(recipe, teach, paths, Hooks(), 2) == 1


def test_products_that_this_machine_does_not_have_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(ops, "is_accurate", lambda: False)
    with refused(UsageError, "training.product"):
        plan._choose_paths(asking(product="onednn"), None, Hooks(), CPU)


def instantly(seconds, agreed=True):
    """A timing that takes no time, whose rounds agree or not."""

    def time_ways(objective, ways, batch, recipe, choose, hooks, clock):
        found = {way: seconds[way] for way in ways}
        return found, choose(found) if agreed else None

    return time_ways


@pytest.fixture
def choosing(monkeypatch):
    """Chooses at a first start, on a machine of these paths, by a timing in place of the real one.

    What is chosen and said, and the tokens of each step that was timed.
    """

    def choose(timing, hooks=None, model=None, bf16=False, **training):
        monkeypatch.setattr(ops, "is_accurate", lambda: True)
        monkeypatch.setattr(ops, "native_bf16", lambda device: bf16)
        monkeypatch.setattr(measuring, "time_ways", timing)
        batches = SimpleNamespace(iterate=lambda position: iter([(SimpleNamespace(tokens=900), Position())]))
        made, asked = SimpleNamespace(batches=batches, model=model or torch.nn.Linear(3, 3), use=str), []

        def teach(recipe, paths, again):
            asked.append(recipe.training.tokens)
            return made

        paths, said = plan._choose_paths(asking(tokens=4096, **training), teach, hooks or Hooks(), CPU)
        return paths, said or "", asked

    return choose


@pytest.mark.parametrize(
    ("precision", "product", "exact"),
    [("auto", "bf16", "onednn"), ("fp32", "onednn", "onednn"), ("mixed", "bf16", "onednn")],
)
def test_products_are_computed_by_the_path_that_is_fastest_here(choosing, precision, product, exact) -> None:
    seconds = {"exact": 0.3, "onednn": 0.2, "bf16": 0.1}
    paths, said, asked = choosing(instantly(seconds), bf16=True, precision=precision)
    assert (paths, asked) == (ProductPaths(product, exact), [512])
    assert f"{seconds[exact]:.3f} s" in said
    assert (f"{seconds[product]:.3f} s" in said) == (precision != "mixed")  # there nothing is to be chosen
    large = torch.nn.Linear(8_000, 1_000, device="meta")  # of which fewer tokens are timed
    assert choosing(instantly(seconds), model=large, bf16=True, precision=precision)[2] == [512, 256]


@pytest.mark.parametrize(("faster", "product"), [(0.28, "onednn"), (0.29, "exact")])
def test_of_two_that_are_as_fast_the_simpler_is_taken(choosing, faster, product) -> None:
    paths, _, _ = choosing(instantly({"exact": 0.3, "onednn": faster}), precision="fp32")
    assert paths == ProductPaths(product, "exact")


@pytest.mark.parametrize("kind", ["exact", "onednn"])
def test_where_no_two_rounds_agree_the_kind_of_processor_decides_and_that_is_said(choosing, monkeypatch, kind) -> None:
    monkeypatch.setattr(ops, "full", lambda device="cpu": kind)
    paths, said, _ = choosing(instantly({"exact": 0.3, "onednn": 0.1}, agreed=False), precision="fp32")
    assert paths == ProductPaths(kind, kind)
    assert "no two rounds agreed" in said


@pytest.mark.parametrize("threads", [1, 2])
def test_one_thread_is_timed_by_what_it_computed(choosing, monkeypatch, threads) -> None:
    """Beside another program a thread waits for a core; that is none of the path's seconds."""
    clocks = []

    def time_ways(objective, ways, batch, recipe, choose, hooks, clock):
        clocks.append(clock)
        return dict.fromkeys(ways, 1.0), ProductPaths()

    hooks = Hooks(clock=lambda: 0.0, processor_clock=lambda: 0.0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    choosing(time_ways, hooks, precision="fp32")
    assert clocks == [hooks.processor_clock if threads == 1 else hooks.clock]


@pytest.mark.parametrize(("both", "agreed", "threads"), [(0.8, True, 2), (0.95, True, 1), (0.5, False, 1)])
def test_more_threads_than_one_are_taken_where_they_are_worth_it(monkeypatch, both, agreed, threads) -> None:
    monkeypatch.setattr(measuring, "time_ways", instantly({1: 1.0, 2: both}, agreed))
    asked = []

    def teach(recipe, paths, again):
        asked.append(recipe.training.tokens)
        batch = (SimpleNamespace(tokens=900), Position())
        return SimpleNamespace(batches=SimpleNamespace(iterate=lambda position: iter([batch])))

    assert plan._choose_threads(asking(tokens=4096), teach, ProductPaths(), Hooks(), 2) == threads
    assert asked == [2048]


@pytest.mark.parametrize(
    ("tokens", "cores", "threads", "shards"),
    [(768, 2, None, 2), (767, 2, None, 1), (1024, 1, None, 1), (1024, 2, 1, 1), (4096, 1, 1, 2), (8192, 2, None, 4)],
)
def test_shards_by_tokens_and_small_ones_where_there_are_two_cores(monkeypatch, tokens, cores, threads, shards) -> None:
    monkeypatch.setattr(plan, "usable_cores", lambda: cores)
    recipe = asking(tokens=tokens)
    recurrent = Recipe.model_validate({"model": {"family": "rnn"}, "training": {"tokens": tokens}})
    assert plan.shards_of(recipe, CPU, threads) == plan.shards_of(recurrent, CPU, threads) == shards
    assert plan.shards_of(recipe, torch.device("cuda"), threads) == 1


def test_kernels_are_a_fingerprint_and_the_processor_has_a_name() -> None:
    task = SimpleNamespace(assets=SimpleNamespace(sha256="b"))
    teaching: Any = SimpleNamespace(prepared=SimpleNamespace(fingerprint="a"), task=task)
    assert plan.fingerprints(teaching, CPU)["fingerprint.kernels"] == kernels.in_use()
    assert plan.processor(CPU)


def test_every_task_of_a_teacher_begins_with_the_same_weights_of_one_model_or_of_another() -> None:
    """Norms of batches count as weights; what was learned before stays what it was."""
    recipe = Recipe(model=TransformerSection(d_model=8, d_ff=8, heads=2, norm="batch", decoder_norm="batch"))
    made = []
    job: Any = SimpleNamespace(
        assets=lambda prepared: SimpleNamespace(sizes=(20, 20)),
        task=type("Made", (), {"build": lambda *given: made.append(Translation.build(*given)) or made[-1]}),
        begin=lambda model, assets: None,
        fit_fresh=lambda task, prepared: None,
        teach=lambda task, prepared, paths: SimpleNamespace(model=made[-1]),
    )
    job.task.__init__ = lambda self, *given: None
    teach = plan.Teacher(job, SimpleNamespace(), CPU)
    fresh = {name: one.clone() for name, one in store.weights(teach(recipe, ProductPaths(), True).model).items()}
    for more, built in ((True, 1), (False, 1), (False, 2)):
        learned = FlatOptimiser(made[-1].eval(), recipe.training)
        held = learned.weights_by_name()
        for one in (learned.weights, *learned.buffers.values()):
            one.add_(1)
        again = teach(recipe, ProductPaths(), more).model
        assert again.training
        assert all(torch.equal(one, fresh[name]) for name, one in store.weights(again).items())
        assert all(torch.equal(one, fresh[name] + 1) for name, one in held.items())
        assert not any(parameter.grad is not None for parameter in again.parameters())
        assert len(made) == built


@pytest.mark.parametrize("name", ["product", "exact"])
def test_a_run_whose_products_numpy_computed_is_refused(tmp_path, name) -> None:
    resolved.write(tmp_path, {**CHOSEN.fields(), f"chosen.{name}": "numpy"}, Files())
    with refused(RegardError, tmp_path / resolved.NAME, "resume='never'"):
        plan.load_settings(tmp_path, CPU)


def test_the_tokens_of_a_timed_step_are_bounded() -> None:
    assert [measuring.timed_tokens(parameters) for parameters in (0, 10**6, 8 * 10**6, 10**9)] == [512, 512, 256, 256]


def test_what_is_asked_for_anew_takes_its_place_but_for_another_path() -> None:
    assert CHOSEN.override(Recipe(), None) == CHOSEN
    asked = CHOSEN.override(asking(steps=20, validate_every=4, tokens=4096), 2)
    assert asked == replace(CHOSEN, steps=20, validate_every=4, threads=2)
    with refused(RegardError, "chosen.product"):
        resolved.check(CHOSEN.fields(), CHOSEN.override(asking(product="exact"), None).fields())
    with pytest.raises(ValueError, match="product"):
        Training(product="bf16", precision="fp32")


@pytest.fixture
def planned(tmp_path):
    """What is planned of ten passes of 40 batches; final scores take two seconds."""

    def find(section: Training, batches: float = 40.0, **hooks: Any):
        teaching: Any = SimpleNamespace(
            task=SimpleNamespace(recipe=Recipe(training=section)),
            paths=ProductPaths(),
            batches=SimpleNamespace(batches_per_epoch=batches),
            epochs=10,
            final_seconds=lambda loss, text: 2.0 + loss + text,
        )
        return plan._plan(plan._Measuring(teaching, tmp_path, Hooks(**hooks), WorkerGroup()))

    return find


def kept(recipe: Recipe, steps: int) -> MeasuredSteps:
    """As many steps as measured, half a second each, at the rates of a recipe."""
    rate = schedule(recipe.training.model_copy(update={"steps": recipe.training.steps or 10**9}), 512)
    updates = [Update(1.0, 1.0, rate(n), 1.0, True, None, 1, 1) for n in range(1, steps + 1)]
    made = [MeasuredStep(update, Position(), 0.5) for update in updates]
    return MeasuredSteps(made, FlatOptimiser(torch.nn.Linear(1, 1), recipe.training))


@pytest.fixture
def measured(monkeypatch) -> list[tuple[float, int]]:
    """What was asked of measuring: seconds and steps; it takes twenty steps, or as many as it may, and a second."""
    asked: list[tuple[float, int]] = []

    def measure(teaching, feed, recipe, folder, hooks, limit, most=30, world=None):
        asked.append((limit, most))
        made = kept(recipe, min(most, 20))
        return budget.Costs(0.5, 0.0, 0.0, 0.0, 1.0 + sum(one.seconds for one in made.made)), made

    monkeypatch.setattr(measuring, "measure", measure)
    return asked


KNOWN_LENGTHS = [
    (Training(steps=40, minutes=1, validate_every=3), 40, 3),
    (Training(patience=4, schedule="noam"), None, 1000),
    (Training(steps=40, patience=4, schedule="noam", validate_every=5), 40, 5),
]


@pytest.mark.parametrize(("section", "steps", "every"), KNOWN_LENGTHS)
def test_a_length_that_is_known_is_not_measured(planned, section, steps, every) -> None:
    plan = planned(section)
    assert (plan.steps, plan.validate_every, plan.costs, plan.kept) == (steps, every, None, None)


def test_a_length_of_minutes_keeps_the_steps_that_are_its_own(planned, measured) -> None:
    """Nine tenths of twenty minutes, less two seconds of scores and one of measuring, at half a second a step."""
    plan = planned(Training(minutes=20, schedule="noam", warmup=9, validate_every=50))
    assert plan.steps == (0.9 * 1200 - 2 - 1) * 2
    assert plan.costs == budget.Costs(0.5, 0.0, 0.0, 0.0, 1.0, 2.0)
    assert plan.kept is not None
    assert measured == [(120.0, 30)]


OTHER_STEPS = [
    {"schedule": "cosine", "warmup": 19},  # behind the warm-up each number of steps has rates of its own
    {"schedule": "noam", "warmup": 400},  # of so few steps the warm-up is shorter
    {"schedule": "noam", "warmup": 9, "validate_every": 20},
    {"schedule": "noam", "warmup": 9, "save_every": 20},
    {"schedule": "noam", "warmup": 9, "minutes": 2},  # a snapshot is due before
]


@pytest.mark.parametrize("training", OTHER_STEPS)
def test_and_makes_those_again_that_are_not(planned, measured, training) -> None:
    section = Training(**{"minutes": 20, "validate_every": 50, **training})
    plan = planned(section)
    assert plan.kept is None
    assert plan.costs.spent == 11.0
    assert plan.steps == (0.9 * 60 * section.minutes - 2 - 11) * 2


def test_the_table_knows_its_steps_and_keeps_what_was_measured(planned, measured, monkeypatch) -> None:
    """Of 4,000 steps the first snapshot is at 40, of 2,000 at 20: then fewer are measured."""
    monkeypatch.setattr(measuring, "MOST", 30)
    for accumulate, most in ((1, 30), (2, 19), (10, 30)):
        plan = planned(Training(accumulate=accumulate), batches=400.0)
        assert plan.steps == 4000 / accumulate
        assert measured.pop() == (30.0, most)
        assert (plan.kept is None) == (accumulate == 10)


def test_the_first_event_of_a_run() -> None:
    assert plan.first_event(Training(steps=10_000)) == 100  # a snapshot
    assert plan.first_event(Training(steps=10_000, validate_every=30, save_every=20)) == 20
    assert plan.first_event(Training(steps=10_000, validate_every=30)) == 30
    assert plan.first_event(Training(steps=1)) == 1


def test_where_minutes_are_few_that_is_said_and_the_loss_decides(planned, monkeypatch) -> None:
    recipe, costs, told = asking(minutes=1), budget.Costs(1.0, 1.0, 40.0, 0.0, 6.0), Counting()
    monkeypatch.setattr(measuring, "measure", lambda *given: (costs, kept(recipe, 2)))
    assert planned(recipe.training, reporter=told).select == "loss"
    assert any("too little time to learn much" in event for event in told.events)
    chosen = replace(CHOSEN, select="loss")
    assert chosen.apply(recipe).training.select == "loss"
    assert chosen.apply(asking(select="bleu")).training.select == "bleu"
    assert CHOSEN.apply(recipe).training.select == "auto"
    assert chosen.override(asking(steps=30), None).select is None
