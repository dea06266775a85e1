"""Ensembles of models on disk and in memory: what is written, by torch and by the engine, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.system.errors import UsageError
from regard.tasks.engine import use_engine
from regard.tasks.text.task import with_models
from tests.refusals import refused
from tests.tasks import small_tasks

TEXTS = [small_tasks.SOURCE, "The street.", "The animal was too tired."]


def written(task: Any) -> list[list[tuple[int, ...]]]:
    found = [*task.nbest(TEXTS, 3, 4), *task.sample(TEXTS, 2)]
    return [[one.tokens for one in line] for line in found]


def test_the_engine_writes_what_torch_does_and_others_matter() -> None:
    first, second = small_tasks.translator(5), small_tasks.translator(6)
    both = first.with_models([second])
    by_torch = written(both)
    assert by_torch != written(first)
    use_engine(first)
    use_engine(second)
    assert written(first.with_models([second])) == by_torch
    assert written(both.with_settings(["decoding.groups=2"])) != by_torch
    [alone], among = both.nbest(TEXTS[:1], 3, 4), both.nbest(TEXTS, 3, 4)[0]
    assert [one.tokens for one in alone] == [one.tokens for one in among]
    assert np.allclose([one.score for one in alone], [one.score for one in among], rtol=1e-5)


@pytest.mark.usefixtures("compiled")
@pytest.mark.one_of(2)
@pytest.mark.parametrize("make", [small_tasks.translator, small_tasks.asker])
def test_the_coverage_penalty_is_of_all_models(make: Any) -> None:
    """Of one with itself it is that of one; the engine finds what torch does."""
    setting = ["decoding.coverage_penalty=2"]
    first, second = make(decoder_heads=2), make(decoder_layers=1)
    found = [one.with_settings(setting).nbest(TEXTS, 3, 4) for one in (first, first.with_models([first, second]))]
    assert written(first.with_models([first]).with_settings(setting)) == written(first.with_settings(setting))
    assert found != [one.nbest(TEXTS, 3, 4) for one in (first, first.with_models([first, second]))]
    use_engine(first)
    use_engine(second)
    for one, wanted in zip((first, first.with_models([first, second])), found, strict=True):
        for line, expected in zip(one.with_settings(setting).nbest(TEXTS, 3, 4), wanted, strict=True):
            assert [each.tokens for each in line] == [each.tokens for each in expected]
            assert np.allclose([each.score for each in line], [each.score for each in expected], rtol=1e-4)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("make", [small_tasks.translator, small_tasks.recurrent, small_tasks.asker])
def test_a_model_with_itself_is_the_model_alone(make: Any) -> None:
    task = make()
    both = task.with_models([task])
    assert written(both) == written(task)
    alone, twice = ([one.score for line in found.nbest(TEXTS, 2) for one in line] for found in (task, both))
    assert np.allclose(alone, twice, rtol=1e-5)


def test_language_models_write_together_by_the_mean_of_their_probabilities() -> None:
    first, second = small_tasks.speaker(5), small_tasks.speaker(6)
    both, asked = first.with_models([second]), {"temperature": 0.0, "max_tokens": 9}
    [found] = both.generate("The", **asked)
    assert "".join(both.stream("The", **asked)) == found.text
    ids = np.append(first.assets.tokenizer.encode("The").ids, found.tokens).astype(np.int64)
    nats = [model.surprise([ids])[0][-len(found.tokens) :] for model in (first, second)]
    assert found.end == "limit"
    assert found.log_probability == pytest.approx(np.log(np.mean(np.exp(-np.array(nats)), axis=0)).sum(), rel=1e-4)


def test_models_that_do_not_go_together_are_refused_by_name() -> None:
    task, other = small_tasks.translator(), small_tasks.translator()
    other.recipe = other.recipe.model_copy(
        update={"text": other.recipe.text.model_copy(update={"target_language": "fr"})}
    )
    for wrong, why in (
        (small_tasks.asker(), "another task"),
        (other, "translates other languages"),
        (_of_another_vocabulary(), "another vocabulary"),
    ):
        with refused(UsageError, "others[0]", why):
            task.with_models([wrong])
        with refused(UsageError, "b", f"{why} than a"):
            with_models(task, Path("a"), {Path("b"): wrong})
    with refused(UsageError, "others", "searches for nothing"):
        small_tasks.classifier().with_models([])
    shortlisted = task.with_models([task]).with_settings(["decoding.shortlist=true"])
    with refused(UsageError, "decoding.shortlist", "an ensemble"):
        shortlisted.translate("The street.")


def _of_another_vocabulary() -> Any:
    other = small_tasks.translator()
    other.assets = type(other.assets)(small_tasks.tokenizer(), small_tasks.tokenizer(), True)
    return other
