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
from tests.inspection.payloads import Ask, Number, unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, before, log, put, translator, viewer

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
    "pair place places label begin form temperature seed most off mask pixels number weights between part token"
).split()


def test_state_is_plain_values(models: Models) -> None:
    found = state(models)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["version"] == regard.__version__
    assert [one["name"] for one in found["models"]] == list(EVERY)
    keys = set(found["models"][0])
    assert all(set(one) == keys for one in found["models"])


def test_a_decoder_that_is_recurrent_is_looked_into_without_self_attention(tmp_path: Path) -> None:
    models = Models([put(tmp_path / "student", translator(decoder_cell="ssru", positions="relative"))])
    (facts,) = state(models)["models"]  # type: ignore[misc]
    assert (facts["kinds"], facts["masked"]) == ({"encoder": [2, 3], "cross": [3, 3]}, [])
    assert facts["stacks"] == ["encoder", "decoder"]

    def ask(name: str, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return unpack(answer(models, name, {"model": 0, **before("translator"), **given}))

    assert set(ask("look")[0]["kinds"]) == {"encoder", "cross"}
    assert ask("equation", kind="cross", layer=3)[1]["weight"].sum() == pytest.approx(1)
    parts = [tuple(one) for one in ask("layers", stack="decoder")[0]["parts"]]
    assert parts == [(layer, part) for layer in (1, 2, 3) for part in ("recurrence", "cross", "feedforward")]
    assert ask("needs", places=[0])[0]["total"] == 15
    assert ask("owes", place=0)[1]
    kinds = [unpack(answer(models, "places", {"model": 0, "stack": one}))[0]["kind"] for one in facts["stacks"]]
    assert kinds == ["relative", "none"]
    for name, given in (("equation", {"kind": "decoder"}), ("look", {"changes": {"off": [["decoder", 1, 1]]}})):
        with refused(UsageError, None, "no decoder attention, but encoder and cross"):
            ask(name, **given)


def refusal(ask: Callable[[], object]) -> str | None:
    """The sentence by which something is refused; ``None`` where it is answered."""
    try:
        ask()
    except RegardError as error:
        return str(error)
    return None


@pytest.mark.one_of(6)
@pytest.mark.parametrize("name", EVERY)
def test_whatever_is_asked_is_answered_or_refused(models: Models, number: Number, name: str) -> None:
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
    _, seen = unpack(answer(models, "look", {"image": {"number": 2}}))
    np.testing.assert_array_equal(seen["pixels"], arrays["pixels"][1])
    with refused(UsageError, "model"):
        answer(models, "images", {"model": 1})
    with refused(UsageError, "image", "5", "4"):
        answer(models, "look", {"image": {"number": 4}})


def test_the_course_of_a_training(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"kind": "start", "step": 0, "steps": 200}]
    for step in range(1, 101):
        norms = {"encoder": 0.5 * step, "decoder": None} if step < 100 else {"decoder": 2.0, "output": 3.0}
        line = {"kind": "step", "step": step, "loss": 9 - step / 4, **({"norms": norms} if step % 50 == 0 else {})}
        texts = {"reference": "", "hypothesis": ""}
        lines += [line, *({"kind": "sample", "step": step, "source": f"{step}{text}", **texts} for text in "ab")]
    models = Models([put(tmp_path, translator())])
    with refused(RegardError, "metrics.jsonl"):
        course(models, 0, 10)
    log(tmp_path, lines)
    values, arrays = unpack(course(models, 0, 10))
    assert (values["planned"], values["running"]) == (200, True)
    shown = [one["step"] for one in values["samples"]]
    assert [one["source"] for one in values["samples"]] == [f"{at}{text}" for at in shown[::2] for text in "ab"]
    assert (shown[0], shown[-1], len(shown), set(np.diff(shown[::2])) <= {2, 3}) == (1, 100, 80, True)
    assert values["norms"] == {"steps": [50, 100], "names": ["encoder", "decoder", "output"]}
    np.testing.assert_array_equal(arrays["norms"], [[25, np.nan, np.nan], [np.nan, 2, 3]])
    assert len(arrays["step"]) == 10
    log(tmp_path, [*lines, {"kind": "step", "step": 101}])
    assert len(unpack(course(models, 0, 1000))[1]["step"]) == 101


def test_courses_that_are_not_there(models: Models) -> None:
    cases: list[tuple[Any, int, Any]] = [(99, 10, ("model", "99")), (-1, 10, ("model",)), (0, 0, ("points",))]
    for number, points, refusal in [*cases, ("0", 10, ("model",))]:
        with refused(UsageError, *refusal):
            course(models, number, points)


A = [{"text": "a"}]
ALONE = ("near", "map", "vectors", "places", "drift")
"""Questions about a model without a text before it."""


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("question", "name", "given", "refusal"),
    [
        ("owes", "translator", {}, (UsageError, "place", "0")),
        ("owes", "translator", {"place": 99}, (UsageError, "place", "0")),
        ("owes", "translator", {"place": 1, "label": "good"}, (UsageError, "label")),
        ("owes", "translator", {"place": 1, "text": ""}, (RegardError, "text")),
        ("owes", "speaker", {"place": 0}, (UsageError, "place")),
        ("owes", "tagger", {}, (UsageError, "place")),
        ("owes", "tagger", {"place": 0}, (UsageError, "place")),
        ("owes", "tagger", {"place": 1, "label": "ugly"}, (UsageError, "label", "ugly")),
        ("owes", "classifier", {"label": "ugly"}, (UsageError, "label")),
        ("owes", "classifier", {"place": 1}, (UsageError, "place")),
        ("owes", "classifier", {"against": "ugly"}, (UsageError, "label")),
        ("owes", "classifier", {"against": 1}, (UsageError, "against")),
        ("owes", "classifier", {"method": "guess"}, (UsageError, "method")),
        ("owes", "translator", {"place": 1, "against": 10**6}, (UsageError, "against", "number")),
        ("owes", "translator", {"place": 1, "against": "good"}, (UsageError, "label")),
        ("owes", "encoder", {"place": 1}, (UsageError, "model")),
        ("owes", "viewer", {"image": None}, (UsageError, "image")),
        ("needs", "translator", {}, (UsageError, "place")),
        ("needs", "translator", {"places": [99]}, (UsageError, "place")),
        ("needs", "translator", {"places": [0], "begin": 1000}, (UsageError, "begin", "24")),
        ("needs", "translator", {"places": "3"}, (UsageError, "places")),
        ("needs", "classifier", {"label": "ugly"}, (UsageError, "label")),
        ("needs", "encoder", {"places": [1]}, (UsageError, "model")),
        ("needs", "speaker", {"places": [0]}, (UsageError, "place")),
        ("near", "translator", {}, (UsageError, "text")),
        ("near", "translator", {"text": "a", "id": 5}, (UsageError, "text")),
        ("near", "translator", {"text": " "}, (UsageError, "text")),
        ("near", "translator", {"id": 10**6}, (UsageError, "id", "1000000")),
        ("near", "translator", {"text": "a", "count": 0}, (UsageError, "count")),
        ("near", "classifier", {"text": "a", "side": "target"}, (UsageError, "side")),
        ("near", "viewer", {"text": "a"}, (UsageError, "side")),
        ("map", "translator", {"count": 10**6}, (UsageError, "count")),
        ("map", "translator", {"side": "left"}, (UsageError, "side")),
        ("vectors", "translator", {}, (UsageError, "texts")),
        ("vectors", "translator", {"texts": ["a"] * 65}, (UsageError, "texts", "65")),
        ("vectors", "translator", {"texts": ["a", 5]}, (UsageError, "texts")),
        ("vectors", "translator", {"texts": ["a", ""]}, (UsageError, "text")),
        ("vectors", "translator", {"texts": ["a"], "text": "a"}, (UsageError, "text")),
        ("places", "classifier", {"stack": "decoder"}, (RegardError, "stack")),
        ("places", "classifier", {}, (UsageError, "stack")),
        ("places", "classifier", {"stack": "encoder", "count": 0}, (UsageError, "count")),
        ("drift", "recurrent", {"scenes": A}, (RegardError, "stack")),
        ("drift", "classifier", {"scenes": A, "stack": "decoder"}, (RegardError, "stack")),
        ("drift", "translator", {}, (UsageError, "scenes")),
        ("drift", "translator", {"scenes": []}, (UsageError, "scenes")),
        ("drift", "translator", {"scenes": A * 3}, (UsageError, "scenes", "3")),
        ("drift", "translator", {"scenes": ["a"]}, (UsageError, "scenes")),
        ("drift", "translator", {"scenes": [{"text": ""}]}, (RegardError, "text")),
        ("drift", "translator", {"scenes": [{"words": "a"}]}, (UsageError, "words")),
        ("drift", "translator", {"scenes": A, "pair": [[0, 0]]}, (UsageError, "pair")),
        ("drift", "translator", {"scenes": A, "pair": [[0, 0], [1, 0]]}, (UsageError, "pair", "1")),
        ("drift", "translator", {"scenes": A, "pair": [[0, 0], [0, 9]]}, (UsageError, "pair", "9")),
        ("drift", "translator", {"scenes": A, "pair": [[0, 0], 5]}, (UsageError, "pair")),
        ("drift", "translator", {"scenes": A, "pair": [[0, 0], [0]]}, (UsageError, "pair")),
        ("drift", "translator", {"scenes": A, "changes": {"off": [["cross", 9, 1]]}}, (UsageError, "head")),
        ("head", "translator", {}, (UsageError, "kind")),
        ("head", "translator", {"kind": "cross", "merge": "rollout"}, (UsageError, "merge")),
        ("head", "translator", {"kind": "cross", "merge": "sum"}, (UsageError, "merge")),
        ("head", "translator", {"kind": "cross", "layer": 1}, (UsageError, "head")),
        ("head", "translator", {"kind": "cross", "layer": 4, "head": 1}, (UsageError, "layer", "1", "3")),
        ("head", "translator", {"kind": "encoder", "merge": "mean", "layer": 3}, (UsageError, "layer", "1", "2")),
        ("head", "translator", {"kind": "encoder", "merge": "rollout", "layer": 3}, (UsageError, "layer", "1", "2")),
        ("head", "translator", {"kind": "cross", "layer": 1, "head": 4}, (UsageError, "head", "1", "3")),
        ("head", "tagger", {"kind": "decoder", "merge": "mean"}, (UsageError, "kind")),
        ("head", "translator", {"kind": "cross", "layer": 0, "head": 1}, (UsageError, "layer", "1")),
        ("head", "translator", {"kind": "cross", "query": 0}, (UsageError, "query")),
        ("equation", "translator", {"kind": "encoder", "query": 99}, (UsageError, "query", "99")),
        ("equation", "translator", {"kind": "encoder", "layer": 9}, (UsageError, "head", "9")),
        ("equation", "translator", {"kind": "encoder", "head": 9}, (UsageError, "head", "9")),
        ("equation", "translator", {"kind": "encoder", "query": -1}, (UsageError, "query", "0")),
        ("equation", "translator", {"kind": "other"}, (UsageError, "kind")),
        ("equation", "translator", {"kind": "encoder", "text": ""}, (RegardError, "text")),
        ("equation", "tagger", {"kind": "decoder"}, (UsageError, "head")),
        ("tree", "classifier", {}, (UsageError, "model")),
        ("tree", "translator", {"beam": 0}, (UsageError, "beam", "1")),
        ("tree", "translator", {"beam": 33}, (UsageError, "beam", "32")),
        ("tree", "translator", {"branches": 3}, (UsageError, "branches")),
        ("distribution", "translator", {}, (UsageError, "model")),
        ("distribution", "speaker", {"place": 4000}, (UsageError, "place")),
        ("distribution", "speaker", {"temperature": 0.0}, (UsageError, "temperature")),
        ("layers", "classifier", {"stack": "decoder"}, (UsageError, "stack")),
        ("look", "translator", {"text": ""}, (RegardError, "text")),
        ("look", "translator", {"image": {"pixels": [1]}}, (UsageError, "image")),
        ("look", "translator", {"image": {"number": 0}}, (UsageError, "image")),
        ("look", "translator", {"model": 99}, (UsageError, "model", "99")),
        ("look", "translator", {"snapshot": "step 1"}, (UsageError, "snapshot")),
        ("look", "viewer", {"image": None}, (UsageError, "image")),
        ("look", "viewer", {"image": {"pixels": [1, 2]}}, (RegardError, "image", "6 x 4 x 1")),
        ("look", "viewer", {"image": {"number": 0}}, (UsageError, "image")),
        ("look", "classifier", {"target": "good"}, (UsageError, "target")),
    ],
)
def test_what_is_not_there(ask: Ask, plain: Ask, question: str, name: str, given: dict[str, Any], refusal: Any) -> None:
    given = {"stack": "encoder", **given} if question == "drift" else given
    with refused(*refusal):
        (plain if question in ALONE else ask)(question, name, **given)
