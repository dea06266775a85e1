"""The single-file page holds a whole pass and loads nothing."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regard.explore.folders.models import Models
from regard.explore.questions.answers import export_file
from tests.explore.payloads import unpack
from tests.tasks.small_tasks import EVERY, TARGET, before

NUMBERS = re.compile(r'<script type="application/octet-stream" id="payload">([A-Za-z0-9+/=]*)</script>')


@pytest.fixture
def page(models: Models, number: Callable[[str], int]) -> Callable[..., str]:
    def made(name: str, **given: Any) -> str:
        content, media, file = export_file(models, {"model": number(name), **before(name), "form": "html", **given})
        assert (media, file) == ("text/html", f"{name}-attention.html")
        return content.decode()

    return made


@pytest.mark.parametrize("name", EVERY)
def test_the_file_holds_what_the_page_is_answered_and_every_weight(
    page: Callable[..., str], ask: Any, models: Models, name: str
) -> None:
    (numbers,) = NUMBERS.findall(page(name))
    told, held = unpack(b64decode(numbers))
    values, arrays = ask("look", name)
    for name_of_one_answer in ("weights", "opening"):
        del values[name_of_one_answer]
    assert {key: told[key] for key in values} == values
    assert told["model"]["name"] == name
    assert list(held) == list(arrays)
    for one, array in arrays.items():
        np.testing.assert_array_equal(held[one], array)


def test_the_file_begins_where_it_was_asked_for(page: Callable[..., str], ask: Any) -> None:
    shown = {"kind": "cross", "layer": 2, "head": 3, "token": 1, "words": True}
    (numbers,) = NUMBERS.findall(page("translator", **shown))
    wanted = {"kind": "cross", "layer": 2, "head": 3, "query": 1, "whole": True}
    assert unpack(b64decode(numbers))[0]["place"] == wanted
    (numbers,) = NUMBERS.findall(page("translator"))
    found, opening = unpack(b64decode(numbers))[0]["place"], ask("look", "translator", opening="cross")[0]["opening"]
    assert {**opening, "kind": "cross", "whole": True} == found


def test_no_path_of_this_machine_goes_along(page: Callable[..., str], models: Models) -> None:
    (numbers,) = NUMBERS.findall(page("translator"))
    assert str(models.folders[0].path.parent).encode() not in b64decode(numbers)


def test_no_other_text_of_the_training_goes_along(page: Callable[..., str], models: Models) -> None:
    """Nor the names of other moments of it."""
    models.folders[0]._examples = ["a secret of the training"]
    try:
        assert models.states()[0]["examples"] == ["a secret of the training"]
        (numbers,) = NUMBERS.findall(page("translator"))
    finally:
        models.folders[0]._examples = []
    told, _ = unpack(b64decode(numbers))
    assert b"a secret" not in b64decode(numbers)
    assert (told["model"]["examples"], told["model"]["snapshots"], told["model"]["weights"]) == ([], [], None)


def test_what_was_changed_is_said(page: Callable[..., str]) -> None:
    changes = {"off": [["cross", 2, 1]], "positions": True, "scaling": False, "mask": True}
    told, _ = unpack(b64decode(NUMBERS.findall(page("translator", target=TARGET, changes=changes))[0]))
    assert told["asked"] == {"snapshot": None, "target": TARGET, "changes": changes}
    told, _ = unpack(b64decode(NUMBERS.findall(page("translator"))[0]))
    assert told["asked"] == {
        "snapshot": None,
        "target": None,
        "changes": {"off": [], "positions": True, "scaling": True, "mask": True},
    }


def test_the_policy_allows_the_script_and_the_style_in_it_and_nothing_from_elsewhere(page: Callable[..., str]) -> None:
    found = page("translator", text="</script><img onerror=x>")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', found)
    assert policy.startswith("default-src 'none';")
    for tag, opening in (("script", r'<script type="module">'), ("style", "<style>")):
        (content,) = re.findall(f"{opening}(.*?)</{tag}>", found, re.DOTALL)
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.findall(r'(?:src|href)="(?!data:)', found.replace(NUMBERS.findall(found)[0], ""))
    assert "onerror" not in found.replace(NUMBERS.findall(found)[0], "").split("<body>")[1].split("<script type=")[0]
