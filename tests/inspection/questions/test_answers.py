"""Every request is answered or refused with a message; metrics of a training."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import ANSWERS, answer, course, export_file, state, stream_tokens
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, PIXELS, SOURCE, before, log, put, translator, viewer

DEEP: Any = []
for _ in range(5_000):
    DEEP = [DEEP]
HUGE: dict[str, Any] = {"x": {}}
for _ in range(500):
    HUGE = {"text": HUGE, "changes": HUGE}
JUNK = [None, True, -1, 0, 1, 3, 10**30, 0.5, "", "a", "x" * 100_001, "\ud800"]
JUNK += [[], [[]], [1, "a"], {}, {"a": 1}, DEEP, HUGE]
FIELDS = (
    "model snapshot text target branch image changes kind merge layer head query beam stack count side id texts scenes "
    "pair place places label begin form temperature seed most off mask pixels number weights"
).split()


def test_state_is_plain_values(models: Models) -> None:
    found = state(models)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["version"] == regard.__version__
    assert [one["name"] for one in found["models"]] == list(EVERY)
    keys = set(found["models"][0])
    assert all(set(one) == keys for one in found["models"])


def refusal(ask: Callable[[], object]) -> str | None:
    """The sentence by which something is refused; ``None`` where it is answered."""
    try:
        ask()
    except RegardError as error:
        return str(error)
    return None


@pytest.mark.one_of(6)
@pytest.mark.parametrize("name", EVERY)
def test_whatever_is_asked_is_answered_or_refused(models: Models, number: Callable[[str], int], name: str) -> None:
    """Fields of any type, at random: an answer, or one sentence."""
    draw = random.Random(list(EVERY).index(name))
    questions: list[Callable[[Any], Any]] = [lambda asked, one=one: answer(models, one, asked) for one in ANSWERS]
    questions += [lambda asked: list(stream_tokens(models, asked)), lambda asked: export_file(models, asked)]
    refused = 0
    for question in questions:
        for _ in range(12):
            given = {field: draw.choice(JUNK) for field in draw.sample(FIELDS, draw.choice([0, 1, 1, 2, 3]))}
            given = draw.choice([given, {**before(name), **given}])
            said = refusal(lambda question=question, given=given: question({"model": number(name), **given}))
            refused += said is not None
            assert said is None or 10 < len(said.encode()) < 400
    assert refused > 50


def test_state_needs_no_torch(models: Models) -> None:
    """So that a page has it while torch is still being loaded."""
    folders = [folder.given for folder in models.folders]
    code = f"""
import json, sys
from regard.inspection.questions.answers import state
from regard.inspection.folders.models import Models
found = state(Models({folders!r}))
assert "torch" not in sys.modules
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == state(models)


def test_questions_that_are_not_known(models: Models) -> None:
    for name in ("state", "write", "\ud800" * 500):
        with refused(UsageError) as raised:
            answer(models, name, {})
        str(raised.value).encode()


def test_images_to_put_before_a_model(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).integers(0, 10, (4, 24)).tolist()
    lines = [f"{','.join(map(str, row))},{label}\n" for row, label in zip(rows, "abcd", strict=True)]
    (tmp_path / "a.csv").write_text("".join(lines))
    places = [put(tmp_path / "small", viewer()), put(tmp_path / "text", translator())]
    models = Models(places, images=tmp_path / "a.csv")
    values, arrays = unpack(answer(models, "images", {"begin": 1, "count": 2}))
    assert (values["labels"], values["total"]) == (["b", "c"], 4)
    np.testing.assert_array_equal(arrays["pixels"], np.round(np.reshape(rows[1:3], (2, 6, 4, 1)) / 9 * 255))
    by_number, seen = unpack(answer(models, "look", {"image": {"number": 2}}))
    by_pixels, drawn = unpack(answer(models, "look", {"image": {"pixels": rows[2]}}))
    assert (by_number["image"].pop("label"), by_pixels["image"].pop("label")) == ("c", None)
    assert by_number == by_pixels
    assert all(np.array_equal(seen[name], drawn[name]) for name in seen)
    np.testing.assert_array_equal(seen["pixels"], arrays["pixels"][1])
    with refused(UsageError, "model"):
        answer(models, "images", {"model": 1})
    with refused(UsageError, "image", "5", "4"):
        answer(models, "look", {"image": {"number": 4}})


def step(number: int, **more: Any) -> dict[str, Any]:
    numbers = {"seconds": number / 2, "loss": 9 - number / 4, "rate": 1e-3, "tokens_per_second": 100, "norm": 1.5}
    return {"kind": "step", "step": number, **numbers, **more}


def test_the_course_of_a_training(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"kind": "start", "step": 0, "steps": 200}]
    for number in range(1, 101):
        norms = {"encoder": 0.5 * number, "decoder": None} if number < 100 else {"decoder": 2.0, "output": 3.0}
        lines.append(step(number, **({"norms": norms} if number % 50 == 0 else {})))
        texts = {"reference": "", "hypothesis": ""}
        lines += [{"kind": "sample", "step": number, "source": f"{number}{text}", **texts} for text in "ab"]
    lines.append({"kind": "valid", "step": 100, "loss": 4.0, "best": True})
    models = Models([put(tmp_path, translator())])
    with refused(RegardError, "metrics.jsonl"):
        course(models, 0, 10)
    log(tmp_path, lines)
    values, arrays = unpack(course(models, 0, 10))
    assert values["planned"] == 200
    assert values["running"]
    assert values["valid"] == [{"step": 100, "loss": 4.0, "best": True}]
    shown = [one["step"] for one in values["samples"]]
    assert [one["source"] for one in values["samples"]] == [f"{at}{text}" for at in shown[::2] for text in "ab"]
    assert (shown[0], shown[-1], len(shown)) == (1, 100, 80)
    assert set(np.diff(shown[::2])) <= {2, 3}
    assert values["norms"] == {"steps": [50, 100], "names": ["encoder", "decoder", "output"]}
    np.testing.assert_array_equal(arrays["norms"], [[25, np.nan, np.nan], [np.nan, 2, 3]])
    np.testing.assert_allclose(arrays["step"], [np.mean(range(begin, begin + 10)) for begin in range(1, 101, 10)])
    np.testing.assert_allclose(arrays["loss"], 9 - arrays["step"] / 4, rtol=1e-6)
    assert {array.dtype.name for array in arrays.values()} == {"float32"}
    log(tmp_path, [*lines, step(101)])
    assert len(unpack(course(models, 0, 1000))[1]["step"]) == 101


def test_courses_that_are_not_there(models: Models) -> None:
    cases: list[tuple[Any, int, Any]] = [(99, 10, ("model", "99")), (-1, 10, ("model",)), (0, 0, ("points",))]
    for number, points, refusal in [*cases, ("0", 10, ("model",))]:
        with refused(UsageError, *refusal):
            course(models, number, points)


def test_a_live_training_is_looked_into(tmp_path: Path) -> None:
    """Refused before the first validation, then seen as it is, then as it has become."""
    early, late = translator(1), translator(2)
    models = Models([put(tmp_path, early, weights=False)])
    log(tmp_path, [{"kind": "start", "step": 0, "steps": 9}])
    (told,) = state(models)["models"]
    assert (told["ready"], told["running"], told["parameters"]) == (False, True, None)
    with refused(RegardError, tmp_path):
        answer(models, "look", {"text": SOURCE})
    seen = []
    for task in (early, late):
        put(tmp_path, task)
        (told,) = state(models)["models"]
        assert told["ready"]
        values, arrays = unpack(answer(models, "look", {"text": SOURCE}))
        assert values["output"]["text"] == task.translate(SOURCE, beam=1)
        seen.append(arrays["weights.encoder"])
    assert not np.array_equal(*seen)


def test_every_question_is_known_to_be_asked(models: Models, number: Callable[[str], int]) -> None:
    assert set(ANSWERS) == set(
        "look head heads row equation tree places drift near map vectors owes needs images layers distribution".split()
    )
    assert answer(models, "look", {"model": number("viewer"), "image": {"pixels": PIXELS}, "text": None})
