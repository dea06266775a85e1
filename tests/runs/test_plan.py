"""What is chosen once is kept, but for what a person asks for anew."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from regard import kernels
from regard.config import Recipe, Training
from regard.data.batches.batch import Position
from regard.nn import ops
from regard.runs import plan
from regard.runs.plan import (
    ResolvedSettings,
    _choose_paths,
    _choose_threads,
    _Measuring,
    _plan,
    fingerprints,
    first_event,
    load_settings,
    processor,
    shards_of,
)
from regard.runs.workers.group import WorkerGroup
from regard.system.errors import RegardError, UsageError
from regard.tasks.training.base import ProductPaths, TrainingTask
from regard.training import budget
from regard.training import measure as measuring
from regard.training.checkpoints import resolved
from regard.training.checkpoints.files import Files
from regard.training.optim import FlatOptimiser, schedule
from regard.training.trainer import Hooks
from regard.training.update import MeasuredStep, MeasuredSteps, Update
from regard.training.world import ALONE, World
from tests.refusals import refused
from tests.training.toy import Counting

CPU = torch.device("cpu")
CHOSEN = ResolvedSettings(
    steps=12, validate_every=3, tokens=512, accumulate=2, product="bf16", exact="onednn", threads=1
)
PLANNED = replace(CHOSEN, costs=(0.5, 0.25, 1.0, 0.125, 9.0))


def test_what_was_chosen_is_remembered(tmp_path: Path) -> None:
    assert load_settings(tmp_path, CPU) is None
    for chosen in (CHOSEN, replace(CHOSEN, steps=None), PLANNED, replace(PLANNED, steps=20, planned=12, reviewed=6)):
        resolved.write(tmp_path, chosen.fields(), Files())
        assert load_settings(tmp_path, CPU) == chosen


def test_it_lies_over_the_recipe() -> None:
    recipe = CHOSEN.apply(Recipe(training=Training(minutes=5, rate=0.5)))
    section = recipe.training
    assert (section.steps, section.validate_every, section.tokens, section.accumulate) == (12, 3, 512, 2)
    assert (section.minutes, section.rate) == (5, 0.5)


def test_what_came_of_planning_anew_is_gone_on_with() -> None:
    assert PLANNED.review is None
    again = replace(PLANNED, steps=20, planned=12, reviewed=6)
    assert again.review == budget.Replanning(at=6, planned=12, steps=20)
    assert again.override(Recipe(training=Training(minutes=5)), None) == again
    assert again.override(Recipe(training=Training(steps=30)), None) == replace(CHOSEN, steps=30)


@pytest.mark.parametrize(("path", "exact"), [("exact", "exact"), ("bf16", ops.full())])
def test_where_products_are_asked_for_nothing_is_timed(path: ops.Path, exact: ops.Path) -> None:
    """Nor are threads, on which the last bits depend too."""

    def teach(recipe: Recipe, paths: ProductPaths) -> TrainingTask:
        raise AssertionError("nothing is to be timed")

    recipe, paths = Recipe(training=Training(product=path)), ProductPaths(path, exact)
    assert _choose_paths(recipe, teach, Hooks(), CPU) == (paths, None)
    assert _choose_threads(recipe, teach, paths, Hooks(), 2) == 1


def test_products_that_this_machine_does_not_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "is_accurate", lambda: False)
    with refused(UsageError, "training.product"):
        _choose_paths(Recipe(training=Training(product="onednn")), cast(Any, None), Hooks(), CPU)


@pytest.mark.parametrize(
    ("precision", "product", "exact"),
    [("auto", "bf16", "onednn"), ("fp32", "onednn", "onednn"), ("mixed", "bf16", "onednn")],
)
def test_products_are_computed_by_the_path_that_is_fastest_here(
    monkeypatch: pytest.MonkeyPatch, precision: ops.Precision, product: ops.Path, exact: ops.Path
) -> None:
    monkeypatch.setattr(ops, "is_accurate", lambda: True)
    monkeypatch.setattr(ops, "native_bf16", lambda device: True)
    seconds = {"exact": 0.3, "onednn": 0.2, "bf16": 0.1}
    monkeypatch.setattr(measuring, "time_ways", instantly(seconds))
    batch = (SimpleNamespace(tokens=900), Position())
    asked: list[Recipe] = []

    def teach(recipe: Recipe, paths: ProductPaths) -> Any:
        asked.append(recipe)
        return SimpleNamespace(batches=SimpleNamespace(iterate=lambda position: iter([batch])), model=model, use=str)

    model = torch.nn.Linear(3, 3)
    paths, said = _choose_paths(Recipe(training=Training(precision=precision, tokens=4096)), teach, Hooks(), CPU)
    assert paths == ProductPaths(product, exact)
    assert said is not None
    assert [one.training.tokens for one in asked] == [512]
    assert f"{seconds[exact]:.3f} s" in said
    assert (f"{seconds[product]:.3f} s" in said) == (precision != "mixed")  # there nothing is to be chosen
    model = torch.nn.Linear(8_000, 1_000, device="meta")
    _choose_paths(Recipe(training=Training(precision=precision, tokens=4096)), teach, Hooks(), CPU)
    assert [one.training.tokens for one in asked[1:]] == [512, 256]  # of a large model fewer


def choosing(monkeypatch: pytest.MonkeyPatch, timing: Any) -> Callable[[Hooks], tuple[ProductPaths, str | None]]:
    """A first start on a machine that has exact and onednn alone, with a timing in place of the real one."""
    monkeypatch.setattr(ops, "is_accurate", lambda: True)
    monkeypatch.setattr(measuring, "time_ways", timing)
    batches = SimpleNamespace(iterate=lambda position: iter([(SimpleNamespace(tokens=900), Position())]))
    made = SimpleNamespace(batches=batches, model=torch.nn.Linear(3, 3), use=str)
    recipe = Recipe(training=Training(precision="fp32", tokens=4096))
    return lambda hooks: _choose_paths(recipe, lambda recipe, paths: cast(Any, made), hooks, CPU)


def instantly(seconds: Mapping[Any, float], agreed: bool = True) -> Any:
    """A timing that takes no time, whose rounds agree or not."""

    def time_ways(objective: Any, ways: Any, batch: Any, recipe: Any, choose: Any, hooks: Any, clock: Any) -> Any:
        found = {way: seconds[way] for way in ways}
        return found, choose(found) if agreed else None

    return time_ways


@pytest.mark.parametrize(("faster", "product"), [(0.28, "onednn"), (0.29, "exact")])
def test_of_two_that_are_as_fast_the_simpler_is_taken(
    monkeypatch: pytest.MonkeyPatch, faster: float, product: ops.Path
) -> None:
    paths, _ = choosing(monkeypatch, instantly({"exact": 0.3, "onednn": faster}))(Hooks())
    assert paths == ProductPaths(product, "exact")


@pytest.mark.parametrize("narrow", [False, True])
def test_where_no_two_rounds_agree_the_kind_of_processor_decides_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, narrow: bool
) -> None:
    kind: ops.Path = "onednn" if narrow else "exact"
    monkeypatch.setattr(ops, "full", lambda device="cpu": kind)
    paths, said = choosing(monkeypatch, instantly({"exact": 0.3, "onednn": 0.1}, agreed=False))(Hooks())
    assert paths == ProductPaths(kind, kind)
    assert "no two rounds agreed" in (said or "")


@pytest.mark.parametrize("threads", [1, 2])
def test_one_thread_is_timed_by_what_it_computed(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Beside another program a thread waits for a core; that is none of the path's seconds."""
    clocks: list[Any] = []

    def time_ways(objective: Any, ways: Any, batch: Any, recipe: Any, choose: Any, hooks: Any, clock: Any) -> Any:
        clocks.append(clock)
        return dict.fromkeys(ways, 1.0), ProductPaths()

    hooks = Hooks(clock=lambda: 0.0, processor_clock=lambda: 0.0)
    choose = choosing(monkeypatch, time_ways)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    choose(hooks)
    assert clocks == [hooks.processor_clock if threads == 1 else hooks.clock]


@pytest.mark.parametrize(("both", "agreed", "threads"), [(0.8, True, 2), (0.95, True, 1), (0.5, False, 1)])
def test_more_threads_than_one_are_taken_where_they_are_worth_it(
    monkeypatch: pytest.MonkeyPatch, both: float, agreed: bool, threads: int
) -> None:
    monkeypatch.setattr(measuring, "time_ways", instantly({1: 1.0, 2: both}, agreed))
    asked: list[Recipe] = []

    def teach(recipe: Recipe, paths: ProductPaths) -> Any:
        asked.append(recipe)
        batch = (SimpleNamespace(tokens=900), Position())
        return SimpleNamespace(batches=SimpleNamespace(iterate=lambda position: iter([batch])))

    assert _choose_threads(Recipe(training=Training(tokens=4096)), teach, ProductPaths(), Hooks(), 2) == threads
    assert [one.training.tokens for one in asked] == [2048]


@pytest.mark.parametrize(
    ("tokens", "cores", "threads", "shards"),
    [(768, 2, None, 2), (767, 2, None, 1), (1024, 1, None, 1), (1024, 2, 1, 1), (4096, 1, 1, 2), (8192, 2, None, 4)],
)
def test_shards_by_tokens_and_small_ones_where_there_are_two_cores(
    monkeypatch: pytest.MonkeyPatch, tokens: int, cores: int, threads: int | None, shards: int
) -> None:
    monkeypatch.setattr(plan, "usable_cores", lambda: cores)
    recipe = Recipe(training=Training(tokens=tokens))
    assert shards_of(recipe, CPU, threads) == shards
    recurrent = Recipe.model_validate({"model": {"family": "rnn"}, "training": {"tokens": tokens}})
    assert shards_of(recurrent, CPU, threads) == shards
    assert shards_of(recipe, torch.device("cuda"), threads) == 1


def test_kernels_are_a_fingerprint() -> None:
    task = SimpleNamespace(assets=SimpleNamespace(sha256="b"))
    teaching: Any = SimpleNamespace(prepared=SimpleNamespace(fingerprint="a"), task=task)
    assert fingerprints(teaching, CPU)["fingerprint.kernels"] == kernels.in_use()


@pytest.mark.parametrize("name", ["product", "exact"])
def test_a_run_whose_products_numpy_computed_is_refused(tmp_path: Path, name: str) -> None:
    resolved.write(tmp_path, {**CHOSEN.fields(), f"chosen.{name}": "numpy"}, Files())
    with refused(RegardError, tmp_path / resolved.NAME, "--resume never"):
        load_settings(tmp_path, CPU)


def test_the_tokens_of_a_timed_step_are_bounded() -> None:
    assert [measuring.timed_tokens(parameters) for parameters in (0, 10**6, 8 * 10**6, 10**9)] == [512, 512, 256, 256]


def test_a_path_and_a_precision_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="product"):
        Training(product="bf16", precision="fp32")


def test_another_path_is_refused_on_resuming(tmp_path: Path) -> None:
    asked = CHOSEN.override(Recipe(training=Training(product="exact")), None)
    with refused(RegardError, "chosen.product"):
        resolved.check(CHOSEN.fields(), asked.fields())


def test_what_is_asked_for_anew_takes_its_place() -> None:
    assert CHOSEN.override(Recipe(), None) == CHOSEN
    asked = CHOSEN.override(Recipe(training=Training(steps=20, validate_every=4, tokens=4096)), 2)
    assert asked == replace(CHOSEN, steps=20, validate_every=4, threads=2)


def teaching(section: Training) -> TrainingTask:
    """Ten passes of 40 batches; final scores take two seconds."""
    return cast(
        TrainingTask,
        SimpleNamespace(
            task=SimpleNamespace(recipe=Recipe(training=section)),
            paths=ProductPaths(),
            batches=SimpleNamespace(batches_per_epoch=40.0),
            epochs=10,
            final_seconds=lambda loss, text: 2.0 + loss + text,
        ),
    )


def kept(recipe: Recipe, steps: int) -> MeasuredSteps:
    """As many steps as measured, half a second each, at the rates of a recipe."""
    rate = schedule(recipe.training.model_copy(update={"steps": recipe.training.steps or 10**9}), 512)
    optimiser = FlatOptimiser(torch.nn.Linear(1, 1), recipe.training)
    return MeasuredSteps(
        [MeasuredStep(Update(1.0, 1.0, rate(n), 1.0, True, None), 1, 1, Position(), 0.5) for n in range(1, steps + 1)],
        optimiser,
    )


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """What was asked of measuring: seconds and steps; it takes twenty steps, or as many as it may, and a second."""
    asked: list[tuple[float, int]] = []

    def measure(
        teaching: Any,
        feed: Any,
        recipe: Recipe,
        folder: Path,
        hooks: Hooks,
        limit: float,
        most: int = 30,
        world: World = ALONE,
    ) -> Any:
        asked.append((limit, most))
        made = kept(recipe, min(most, 20))
        return budget.Costs(0.5, 0.0, 0.0, 0.0, 1.0 + sum(one.seconds for one in made.made)), made

    monkeypatch.setattr(measuring, "measure", measure)
    return asked


@pytest.mark.parametrize(
    ("section", "steps", "every"),
    [
        (Training(steps=40, minutes=1, validate_every=3), 40, 3),
        (Training(patience=4, schedule="noam"), None, 1000),
        (Training(steps=40, patience=4, schedule="noam", validate_every=5), 40, 5),
    ],
)
def test_a_length_that_is_known_is_not_measured(section: Training, steps: int, every: int, tmp_path: Path) -> None:
    plan = _plan(_Measuring(teaching(section), tmp_path, Hooks(), WorkerGroup()))
    assert (plan.steps, plan.validate_every, plan.costs, plan.kept) == (steps, every, None, None)


def test_a_length_of_minutes_keeps_the_steps_that_are_its_own(tmp_path: Path, measured: list[Any]) -> None:
    """Nine tenths of twenty minutes, less two seconds of scores and one of measuring, at half a second a step."""
    plan = _plan(
        _Measuring(
            teaching(Training(minutes=20, schedule="noam", warmup=9, validate_every=50)),
            tmp_path,
            Hooks(),
            WorkerGroup(),
        )
    )
    assert plan.steps == (0.9 * 1200 - 2 - 1) * 2
    assert plan.costs == budget.Costs(0.5, 0.0, 0.0, 0.0, 1.0, 2.0)
    assert plan.kept is not None
    assert measured == [(120.0, 30)]


@pytest.mark.parametrize(
    "training",
    [
        {"schedule": "cosine", "warmup": 19},  # behind the warm-up each number of steps has rates of its own
        {"schedule": "noam", "warmup": 400},  # of so few steps the warm-up is shorter
        {"schedule": "noam", "warmup": 9, "validate_every": 20},
        {"schedule": "noam", "warmup": 9, "save_every": 20},
        {"schedule": "noam", "warmup": 9, "minutes": 2},  # a snapshot is due before
    ],
)
def test_and_makes_those_again_that_are_not(tmp_path: Path, measured: list[Any], training: dict[str, Any]) -> None:
    section = Training(**{"minutes": 20, "validate_every": 50, **training})
    plan = _plan(_Measuring(teaching(section), tmp_path, Hooks(), WorkerGroup()))
    assert plan.kept is None
    assert plan.costs is not None
    assert plan.costs.spent == 11.0
    assert plan.steps == (0.9 * 60 * (section.minutes or 0) - 2 - 11) * 2


def test_the_table_knows_its_steps_and_keeps_what_was_measured(tmp_path: Path, measured: list[Any]) -> None:
    """Of 4,000 steps the first snapshot is at 40, of 2,000 at 20: then fewer are measured."""
    for accumulate, most in ((1, 30), (2, 19), (10, 30)):
        found = teaching(Training(accumulate=accumulate))
        found.batches.batches_per_epoch = 400.0  # type: ignore[misc]
        plan = _plan(_Measuring(found, tmp_path, Hooks(), WorkerGroup()))
        assert plan.steps == 4000 / accumulate
        assert measured.pop() == (30.0, most)
        assert (plan.kept is None) == (accumulate == 10)


def test_the_first_event_of_a_run() -> None:
    assert first_event(Training(steps=10_000)) == 100  # a snapshot
    assert first_event(Training(steps=10_000, validate_every=30, save_every=20)) == 20
    assert first_event(Training(steps=10_000, validate_every=30)) == 30
    assert first_event(Training(steps=1)) == 1


def test_where_minutes_are_few_that_is_said_and_the_loss_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = Training(minutes=1)
    costs = budget.Costs(1.0, 1.0, 40.0, 0.0, 6.0)
    monkeypatch.setattr(measuring, "measure", lambda *given: (costs, kept(Recipe(training=section), 2)))
    told = Counting()
    plan = _plan(_Measuring(teaching(section), tmp_path, Hooks(reporter=told), WorkerGroup()))
    assert plan.select == "loss"
    assert any("too little time to learn much" in event for event in told.events)
    chosen = replace(CHOSEN, select="loss")
    assert chosen.apply(Recipe(training=section)).training.select == "loss"
    assert chosen.apply(Recipe(training=Training(select="bleu"))).training.select == "bleu"
    assert CHOSEN.apply(Recipe(training=section)).training.select == "auto"
    assert chosen.override(Recipe(training=Training(steps=30)), None).select is None


def test_the_processor_has_a_name() -> None:
    assert processor(CPU)
