"""Exported files hold the numbers of the pass and say how it was changed."""

import hashlib
import json
import re
import xml.etree.ElementTree as Tree
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.record import record
from regard.inspection.pictures.view import SMALLER, View
from regard.inspection.questions import export as exports
from regard.inspection.questions.answers import export_file
from regard.inspection.questions.export import describe_changes, request_values
from regard.inspection.requests import Request, read
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, before, keep, put, recurrent, translator

NUMBERS = re.compile(r'<script type="application/octet-stream" id="payload">([A-Za-z0-9+/=]*)</script>')
Export = Callable[..., tuple[bytes, str, str]]


def asked(**given: Any) -> Request:
    return read(Request, {"text": "a", **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ""),
        ({"branch": [3, 4]}, ""),  # what the model wrote itself
        ({"snapshot": "step 1,000"}, "With the weights of step 1,000."),
        ({"target": "Das Tier."}, "Made to write “Das Tier.”"),
        ({"changes": {"positions": False, "mask": False}}, "Without positions, the mask."),
        (
            {"changes": {"off": [["encoder", 1, 2], ["cross", 3, 1]], "scaling": False}, "snapshot": "step 2"},
            "Without encoder–decoder head 3·1, encoder head 1·2, scaling. With the weights of step 2.",
        ),
    ],
)
def test_it_is_said(given: dict[str, Any], said: str) -> None:
    assert describe_changes(asked(**given)) == said


def test_values_are_what_was_asked() -> None:
    """They can be asked again."""
    changes = {"off": [["decoder", 2, 1]], "positions": True, "scaling": False, "mask": True}
    one = asked(changes=changes, snapshot="step 2", target="b")
    again = json.loads(json.dumps(request_values(one)))
    assert again == {"snapshot": "step 2", "target": "b", "changes": changes}
    assert asked(**again) == one


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


@pytest.fixture
def export(models: Models, number: Callable[[str], int]) -> Export:
    return lambda name, **given: export_file(models, {"model": number(name), **before(name), **given})


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", EVERY)
def test_all_numbers_as_json(export: Export, ask: Any, name: str) -> None:
    content, media, file = export(name, form="json")
    values, arrays = ask("look", name)
    found = json.loads(content)
    assert (media, file) == ("application/json", f"{name}-attention.json")
    assert found["output"] == values["output"]
    whole = {"off": [], "positions": True, "scaling": True, "mask": True}
    assert found["asked"] == {"snapshot": None, "target": None, "changes": whole}
    for side in ("source", "target", "written"):
        assert found[side] == [{key: one[key] for key in ("text", "start", "end")} for one in values[side]]
    assert list(found["weights"]) == list(values["kinds"])
    for kind, layers in found["weights"].items():
        np.testing.assert_allclose(layers, arrays[f"weights.{kind}"], atol=1e-6)


def test_a_picture_is_that_of_the_command_line(export: Export, task: Callable[[str], Any]) -> None:
    made = record(task("translator"), SOURCE, TARGET)
    for kind, layer, head in (("cross", 2, 1), ("encoder", None, None), ("decoder", 3, None), ("cross", None, 2)):
        content, media, file = export("translator", target=TARGET, form="svg", kind=kind, layer=layer, head=head)
        assert (media, file) == ("image/svg+xml", "translator-attention.svg")
        assert content.decode() == View(made, kind, layer, head).svg(remark=f"Made to write “{TARGET}”")
    alone = record(task("translator"), SOURCE)
    assert export("translator", form="svg")[0].decode() == View(alone, "encoder").svg()


def seen_and_said(content: bytes) -> tuple[str, str]:
    """The small remarks of a picture, joined, and its description."""
    every = list(Tree.fromstring(content).iter())
    remarks = [one.text or "" for one in every if one.get("class") == "soft"]
    return " ".join(remarks), next(one.text or "" for one in every if one.tag.endswith("desc"))


@pytest.mark.parametrize("shown", [{}, {"kind": "cross", "layer": 1, "head": 2}])
def test_a_picture_says_what_was_changed(export: Export, shown: dict[str, Any]) -> None:
    changes = {"off": [["cross", 2, 1], ["encoder", 1, 3]], "positions": False, "scaling": False, "mask": False}
    said = f"Without encoder–decoder head 2·1, encoder head 1·3, positions, scaling, the mask. Made to write “{TARGET}”"
    for part in seen_and_said(export("translator", form="svg", target=TARGET, changes=changes, **shown)[0]):
        assert said in part
    for part in seen_and_said(export("translator", form="svg", **shown)[0]):
        assert "Without" not in part
        assert "Made to write" not in part


def test_numbers_say_what_was_changed(export: Export) -> None:
    changes = {"off": [["decoder", 1, 1]], "positions": True, "scaling": True, "mask": False}
    found = json.loads(export("translator", form="json", target=TARGET, changes=changes)[0])
    assert found["asked"] == {"snapshot": None, "target": TARGET, "changes": changes}


def test_an_image_is_named(number: Callable[[str], int], models: Models, tmp_path: Path) -> None:
    """By its number from 1 on, and its label; a drawn one as that."""
    lines = [f"{','.join(map(str, range(place, place + 24)))},{'ab'[place]}" for place in range(2)]
    (tmp_path / "images.csv").write_text("\n".join(lines) + "\n")
    hung = Models([models.folders[number("viewer")].path], tmp_path / "images.csv")
    for image, said in (
        ({"number": 0}, "image 1, labelled a, read as "),
        ({"number": 1}, "image 2, labelled b, read as "),
        ({"pixels": list(range(24))}, "a drawn image, read as "),
    ):
        for part in seen_and_said(export_file(hung, {"form": "svg", "image": image})[0]):
            assert said in part


def test_kept_weights_are_named(tmp_path: Path) -> None:
    models = Models([put(tmp_path, translator())])
    keep(tmp_path, translator(), 12)
    kept = {"text": SOURCE, "snapshot": "step 12"}
    for part in seen_and_said(export_file(models, {"form": "svg", **kept})[0]):
        assert "With the weights of step 12." in part
    assert json.loads(export_file(models, {"form": "json", **kept})[0])["asked"]["snapshot"] == "step 12"


@pytest.mark.parametrize(("layer", "head", "heads"), [(None, None, 6), (2, None, 3), (None, 1, 2), (1, 3, 1)])
def test_a_picture_of_an_image(export: Export, layer: int | None, head: int | None, heads: int) -> None:
    content, _, _ = export("viewer", form="svg", layer=layer, head=head)
    Tree.fromstring(content)
    assert content.count(b"to the class token</title>") == heads
    assert b"data:image/png;base64," in content


@pytest.mark.parametrize("name", EVERY)
def test_every_model_has_its_picture(export: Export, name: str) -> None:
    Tree.fromstring(export(name, form="svg")[0])


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("translator", {}, (UsageError, "form")),
        ("translator", {"form": "png"}, (UsageError, "form")),
        ("translator", {"form": "svg", "kind": "all"}, (UsageError, "kind")),
        ("translator", {"form": "svg", "layer": 9}, (UsageError, "--layer", "1", "2")),
        ("translator", {"form": "svg", "head": 9}, (UsageError, "--head", "1", "3")),
        ("tagger", {"form": "svg", "kind": "cross"}, (UsageError, "--kind")),
        ("translator", {"form": "json", "text": " "}, (RegardError, "text")),
        ("viewer", {"form": "svg", "image": None}, (UsageError, "image")),
    ],
)
def test_what_cannot_be_kept(export: Export, name: str, given: dict[str, Any], refusal: Any) -> None:
    with refused(*refusal):
        export(name, **given)


@pytest.mark.parametrize("form", ["json", "html"])
def test_too_many_weights_are_refused(export: Export, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    count = sum(map(np.size, json.loads(export("translator", form="json")[0])["weights"].values()))
    monkeypatch.setattr(exports, "MOST", count)
    assert export("translator", form=form)[0]
    monkeypatch.setattr(exports, "MOST", count - 1)
    with refused(RegardError, "text", f"{count:,}", f"{count - 1:,}"):
        export("translator", form=form)


def opacities(content: bytes) -> list[float]:
    """How dark each square of a picture is, but for those of its scale."""
    squares = [one for one in Tree.fromstring(content).iter() if one.tag.endswith("rect")]
    return [float(one.attrib["fill-opacity"]) for one in squares if "fill-opacity" in one.attrib]


def test_many_heads_are_drawn_smaller_which_is_said(
    export: Export, models: Models, number: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As means over what looks and sums over what is looked at."""
    shown = {"form": "svg", "kind": "encoder", "target": TARGET}
    whole = export("translator", **shown)[0]
    weight_HQK = np.concatenate(record(models.load(number("translator")).task, SOURCE, TARGET).weights["encoder"])
    heads, size, _ = weight_HQK.shape
    assert len(opacities(whole)) == weight_HQK.size
    assert SMALLER not in seen_and_said(whole)[0]
    monkeypatch.setattr(exports, "SQUARES", heads * 4 + 3)
    small = export("translator", **shown)[0]
    for part in seen_and_said(small):
        assert SMALLER in part
    np.testing.assert_allclose(opacities(small), quarters(weight_HQK, size // 2), atol=6e-4)


def quarters(weight_HQK: np.ndarray, middle: int) -> list[float]:
    """Four cells a head, row by row, relative to the head's largest."""
    found = []
    for weight_QK in weight_HQK:
        cells = [
            float(weight_QK[rows, columns].sum(axis=1).mean())
            for rows in (slice(0, middle), slice(middle, None))
            for columns in (slice(0, middle), slice(middle, None))
        ]
        found += [cell / max(cells) for cell in cells]
    return found


@pytest.mark.parametrize(
    ("name", "head", "refusal"),
    [("translator", 1, (RegardError, "text", "20")), ("viewer", None, (RegardError, "head", "20"))],
)
def test_a_picture_that_is_too_large(
    export: Export, monkeypatch: pytest.MonkeyPatch, name: str, head: int | None, refusal: Any
) -> None:
    monkeypatch.setattr(exports, "SQUARES", 20)
    with refused(*refusal):
        export(name, form="svg", layer=1 if head else None, head=head)


def test_names_of_files_are_plain(tmp_path: Path) -> None:
    models = Models([put(tmp_path / 'a "b"\nü', translator()), put(tmp_path / "…", recurrent(score="none"))])
    assert export_file(models, {"text": SOURCE, "form": "json"})[2] == "a-b-attention.json"
    with refused(UsageError, "kind"):
        export_file(models, {"model": 1, "text": SOURCE, "form": "json"})
