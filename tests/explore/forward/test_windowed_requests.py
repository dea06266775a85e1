"""Answers about an over-long text cover one window, which is named; nothing is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from regard.explore.folders.models import Models
from regard.explore.forward.text_windows import WindowedRequest, windows
from regard.explore.questions.answers import export_file, stream_tokens
from tests.explore.payloads import unpack
from tests.tasks.small_tasks import EVERY, GAPPED, SOURCE, TARGET, TEXTS, put, translator

Answer = tuple[dict[str, Any], dict[str, np.ndarray]]
Ask = Callable[..., Answer]

READERS = [name for name in EVERY if name != "viewer"]
WRITERS = ["translator", "recurrent", "speaker", "spanner"]


def long(name: str) -> str:
    """A text of more tokens than any of these models reads; T5 knows two gaps."""
    return f"{f'{SOURCE} ' * 5}{GAPPED}" if name == "spanner" else " ".join([TEXTS.get(name, SOURCE)] * 5)


def check_same(one: Answer, other: Answer) -> None:
    """All numbers, and all that is said but which part it is of."""
    values, others = ({**values, "window": None} for values, _ in (one, other))
    assert values == others
    assert one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name])


@pytest.mark.parametrize("name", READERS)
def test_a_look_is_of_a_part_and_says_of_which(ask: Ask, task: Callable[[str], Any], name: str) -> None:
    text = long(name)
    found = windows(task(name), text)
    for number in (None, 1, 2, len(found.texts), 10**6):
        seen = ask("look", name, text=text, window=number)
        assert seen[0]["window"] == asdict(found.window(number))
        check_same(seen, ask("look", name, text=found.window(number).text))
    whole, _ = ask("look", name)
    assert (whole["window"], whole["target_window"]) == (None, None)


@pytest.mark.parametrize("name", READERS)
def test_every_other_question_is_of_the_same_part(ask: Ask, task: Callable[[str], Any], name: str) -> None:
    text = long(name)
    part = windows(task(name), text).window(2).text
    seen, _ = ask("look", name, text=part)
    kind = next(iter(seen["kinds"]))
    said = task(name).name != "encoding"
    place = {} if task(name).name == "classification" else {"place": 3}
    places = {"places": [place["place"]]} if place else {}
    questions: dict[str, dict[str, Any]] = {
        "head": {"kind": kind, "layer": 1, "head": 1},
        "row": {"kind": kind, "places": [0]},
        "equation": {"kind": kind, "query": 0},
        **({"owes": place, "needs": places} if said else {}),
        **({"tree": {"beam": 2}} if name in WRITERS else {}),
    }
    for question, given in questions.items():
        check_same(ask(question, name, text=text, window=2, **given), ask(question, name, text=part, **given))


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_is_of_the_same_part(
    models: Models, number: Callable[[str], int], task: Callable[[str], Any], name: str
) -> None:
    text = long(name)
    for window in (None, 1, 3):
        given = {"model": number(name), "text": text, "window": window, "most": 5}
        part = windows(task(name), text).window(window).text
        assert list(stream_tokens(models, given)) == list(
            stream_tokens(models, {**given, "text": part, "window": None})
        )


def test_paths_of_words_are_of_the_same_part(ask: Ask, plain: Ask, task: Callable[[str], Any]) -> None:
    text = long("classifier")
    part = windows(task("classifier"), text).window(2).text
    given = {"stack": "encoder"}
    check_same(
        plain("drift", "classifier", scenes=[{"text": text, "window": 2}, {"text": text}], **given),
        plain(
            "drift",
            "classifier",
            scenes=[{"text": part}, {"text": windows(task("classifier"), text).texts[0]}],
            **given,
        ),
    )


@pytest.mark.parametrize("name", ["translator", "spanner"])
def test_what_is_forced_may_be_too_long_too(ask: Ask, name: str) -> None:
    target = f"{'[MASK] ' * (name == 'spanner')}{f'{TARGET} ' * 9}"
    seen, _ = ask("look", name, target=target)
    told = seen["target_window"]
    assert (told["number"], told["first"]) == (1, 1)
    assert told["last"] < told["total"]
    assert len(seen["target"]) == told["last"] + 1
    again, _ = ask("look", name, target=told["text"])
    assert again["target"] == seen["target"]
    assert again["target_window"] is None


def test_a_file_says_which_part_it_is_of(
    models: Models, number: Callable[[str], int], task: Callable[[str], Any]
) -> None:
    text = long("translator")
    given = {"model": number("translator"), "text": text, "window": 2, "kind": "cross", "layer": 1, "head": 1}
    told = windows(task("translator"), text).window(2)
    sentence = f"Of the text this is {told.label}."
    svg = export_file(models, {**given, "form": "svg"})[0].decode()
    assert all(word in svg for word in sentence.split())
    numbers = json.loads(export_file(models, {**given, "form": "json"})[0])
    assert numbers["source_text"] == told.text
    assert numbers["window"] == asdict(told)
    assert "target_window" not in numbers
    short = json.loads(export_file(models, {**given, "text": SOURCE, "form": "json"})[0])
    assert "window" not in short


def test_a_page_of_its_own_says_so_too(tmp_path: Any) -> None:
    import re
    from base64 import b64decode

    task = translator()
    models = Models([put(tmp_path / "model", task)])
    page = export_file(models, {"text": long("translator"), "window": 3, "form": "html"})[0].decode()
    payload = re.search(r'id="payload"[^>]*>([A-Za-z0-9+/=]{1000,})', page)
    assert payload
    values, _ = unpack(b64decode(payload[1]))
    assert values["window"] == asdict(windows(task, long("translator")).window(3))
    assert values["source_text"] == values["window"]["text"]


def test_in_a_sentence() -> None:
    task = translator()
    assert WindowedRequest.of(task, SOURCE).label == ""
    found = WindowedRequest.of(task, long("translator"), f"{TARGET} " * 9, 2)
    assert found.label == (
        "Of the text this is part 2 of 5: tokens 14–26 of 65. "
        f"Of what it is made to write this is {found.target.label if found.target else None}."
    )
    assert list(found.cut_values) == ["window", "target_window"]


def test_an_image_has_no_parts(ask: Ask) -> None:
    seen, _ = ask("look", "viewer", window=3)
    assert seen["window"] is None
