"""No answer mixes two sets of weights: each names its own, and a request for others is refused."""

from pathlib import Path
from typing import Any

import pytest

from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import ANSWERS, answer, export_file, stream_tokens
from regard.inspection.requests import WeightsReplaced
from tests.inspection.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, keep, put, translator, viewer

HEAD: dict[str, Any] = {"text": SOURCE, "kind": "encoder", "layer": 1, "head": 1}
QUESTIONS: dict[str, dict[str, Any]] = {
    "look": {"text": SOURCE},
    "head": HEAD,
    "row": {"text": SOURCE, "kind": "encoder", "places": [1]},
    "equation": {**HEAD, "query": 1},
    "tree": {"text": SOURCE, "beam": 2},
    "places": {"stack": "encoder"},
    "drift": {"stack": "encoder", "scenes": [{"text": SOURCE}]},
    "near": {"text": "animal"},
    "map": {"count": 9},
    "vectors": {"texts": ["animal"]},
    "owes": {"text": SOURCE, "place": 0, "branch": [5]},
    "needs": {"text": SOURCE, "places": [0], "branch": [5]},
    "images": {"count": 1},
    "layers": {"text": SOURCE},
    "figure": {"text": SOURCE},
    "box": {"text": SOURCE, "stack": "encoder", "layer": 1, "part": "attention"},
    "write": {"text": SOURCE},
    "export": {"text": SOURCE, "form": "json"},
}
THE_SAME = ("places", "images")
"""What all weights of these tests answer alike."""


def made(question: str, key: int) -> Any:
    """A model that can be asked this."""
    return viewer() if question == "images" else translator(key)


def ask(models: Models, question: str, **more: Any) -> tuple[Any, str | None]:
    """What is answered, and the name of the weights that did; a file to keep does not say it."""
    asked = {**QUESTIONS[question], **more}
    if question == "export":
        return export_file(models, asked)[0], None
    if question == "write":
        *tokens, last = stream_tokens(models, asked)
        return (tokens, last["text"]), last["weights"]
    values, arrays = unpack(answer(models, question, asked))
    return (values, {name: array.tobytes() for name, array in arrays.items()}), values.pop("weights")


def test_these_are_all_questions() -> None:
    """But those that these models do not answer: of what lies beside a model, and of language models."""
    assert set(QUESTIONS) == {*ANSWERS, "write", "export"} - {"heads", "distribution", "without"}


@pytest.mark.one_of(8)
@pytest.mark.parametrize("question", QUESTIONS)
def test_weights_that_are_named_answer_while_they_are_in_memory_and_then_nobody_does(
    tmp_path: Path, question: str
) -> None:
    models = Models([put(tmp_path, made(question, 1))])
    name = models.states()[0]["weights"]
    first, said = ask(models, question)
    assert said in (name, None)
    put(tmp_path, made(question, 2))
    assert ask(models, question, weights=name) == (first, said)
    other, newer = ask(models, question)
    assert (first == other) == (question in THE_SAME)
    assert newer is None or newer == models.states()[0]["weights"] != name
    with refused(WeightsReplaced):
        ask(models, question, weights=name)
    assert ask(models, question, weights=newer) == (other, newer)


@pytest.mark.one_of(8)
@pytest.mark.parametrize("question", [*reversed(QUESTIONS)])
def test_an_answer_is_of_the_same_weights_though_others_come_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """Newer ones come after every time that a model was asked for."""
    models = Models([put(tmp_path, made(question, 1))])
    wanted = ask(models, question)
    loaded, count = Models.load, 1

    def replaced(self: Models, *which: Any) -> Any:
        nonlocal count
        found = loaded(self, *which)
        count += 1
        put(tmp_path, made(question, count))
        return found

    monkeypatch.setattr(Models, "load", replaced)
    assert ask(Models([tmp_path]), question) == wanted
    assert count > 2


@pytest.mark.one_of(3)
@pytest.mark.parametrize("question", sorted({*QUESTIONS} - {"images"}))
def test_weights_that_a_run_kept_are_named_too(tmp_path: Path, question: str) -> None:
    models = Models([put(tmp_path, translator(1))])
    keep(tmp_path, translator(2), 20)
    first, name = ask(models, question, snapshot="step 20")
    assert ask(models, question, snapshot="step 20", weights=name) == (first, name)
    with pytest.raises(WeightsReplaced):
        ask(models, question, snapshot="step 20", weights=models.states()[0]["weights"])


def test_a_text_among_several_may_not_name_others(tmp_path: Path) -> None:
    models = Models([put(tmp_path, translator(1))])
    _, name = ask(models, "drift")
    scenes = [{"text": SOURCE, "weights": name}]
    assert ask(models, "drift", scenes=scenes)[1] == name
    put(tmp_path, translator(2))
    with pytest.raises(WeightsReplaced):
        ask(models, "drift", scenes=scenes)
