"""Exported files hold the numbers of the pass and say how it was changed."""

import hashlib
import json
import re
import xml.etree.ElementTree as Tree
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.record import downsample, record
from regard.inspection.pictures.view import SMALLER, View
from regard.inspection.questions import export as exports
from regard.inspection.questions.answers import export_file
from regard.inspection.questions.export import describe_changes
from regard.inspection.requests import Request, read
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import KEPT, Ask, Number, TaskOf, held
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, before, keep, put, recurrent, translator

Export = Callable[..., tuple[bytes, str, str]]
Page = Callable[..., str]
WHOLE = {"off": [], "positions": True, "scaling": True, "mask": True}


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


@pytest.fixture
def export(models: Models, number: Number) -> Export:
    return lambda name, **given: export_file(models, {"model": number(name), **before(name), **given})


@pytest.fixture
def page(export: Export) -> Page:
    def made(name: str, **given: Any) -> str:
        content, media, file = export(name, form="html", **given)
        assert (media, file) == ("text/html", f"{name}-attention.html")
        return content.decode()

    return made


@pytest.mark.one_of(5)
@pytest.mark.parametrize("name", EVERY)
def test_files_hold_what_the_page_is_answered_and_every_weight(page: Page, export: Export, ask: Ask, name: str) -> None:
    told, kept = held(page(name))
    values, arrays = ask("look", name)
    del values["weights"], values["opening"]
    assert {key: told[key] for key in values} == values
    assert told["model"]["name"] == name
    assert list(kept) == list(arrays)
    for one, array in arrays.items():
        np.testing.assert_array_equal(kept[one], array)
    content, *named = export(name, form="json")
    found = json.loads(content)
    assert (named, found["output"]) == (["application/json", f"{name}-attention.json"], values["output"])
    for side in ("source", "target", "written"):
        assert found[side] == [{key: one[key] for key in ("text", "start", "end")} for one in values[side]]
    assert list(found["weights"]) == list(values["kinds"])
    for kind, layers in found["weights"].items():
        np.testing.assert_allclose(layers, arrays[f"weights.{kind}"], atol=1e-6)
    Tree.fromstring(export(name, form="svg")[0])


def test_the_file_begins_where_it_was_asked_for_or_where_the_page_does(page: Page, ask: Ask) -> None:
    def place(**shown: Any) -> Any:
        return held(page("translator", target=TARGET, **shown))[0]["place"]

    wanted = {"kind": "cross", "layer": 2, "head": 3, "query": 1, "whole": True}
    assert place(kind="cross", layer=2, head=3, token=1, words=True) == wanted
    chosen = {"kind": "encoder", "layer": 1, "head": 2}
    assert place(**chosen) == {**chosen, "whole": False}
    opening = ask("look", "translator", target=TARGET, opening="cross")[0]["opening"]
    assert opening
    assert place() == {**opening, "kind": "cross", "whole": True}


def test_neither_paths_of_this_machine_nor_other_texts_of_the_training_go_along(page: Page, models: Models) -> None:
    """Nor the names of other moments of it."""
    folder = models.folders[0]
    folder._examples = ["a secret of the training"]
    try:
        assert models.states()[0]["examples"] == ["a secret of the training"]
        told, _ = held(page("translator"))
    finally:
        folder._examples = []
    assert "a secret" not in json.dumps(told)
    assert str(folder.path.parent) not in json.dumps(told)
    assert (told["model"]["examples"], told["model"]["snapshots"], told["model"]["weights"]) == ([], [], None)


def test_what_was_changed_is_said(page: Page, export: Export) -> None:
    """And what was not."""
    changes = {"off": [["decoder", 2, 1]], "positions": True, "scaling": False, "mask": True}
    for given, wanted in (({"target": TARGET, "changes": changes}, (TARGET, changes)), ({}, (None, WHOLE))):
        asked = {"snapshot": None, "target": wanted[0], "changes": wanted[1]}
        assert held(page("translator", **given))[0]["asked"] == asked
        assert json.loads(export("translator", form="json", **given)[0])["asked"] == asked


def test_the_policy_allows_the_script_and_the_style_in_it_and_nothing_from_elsewhere(page: Page) -> None:
    found = page("translator", text="</script><img onerror=x>")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', found)
    assert policy.startswith("default-src 'none';")
    for tag, opening in (("script", r'<script type="module">'), ("style", "<style>")):
        (content,) = re.findall(f"{opening}(.*?)</{tag}>", found, re.DOTALL)
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    bare = KEPT.sub("", found)
    assert not re.findall(r'(?:src|href)="(?!data:)', bare)
    assert "onerror" not in bare.split("<body>")[1].split("<script type=")[0]


def test_a_picture_is_that_of_the_command_line(export: Export, task: TaskOf) -> None:
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


def test_an_image_is_named(number: Number, models: Models, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("translator", {}, (UsageError, "form")),
        ("translator", {"form": "png"}, (UsageError, "form")),
        ("translator", {"form": "svg", "kind": "all"}, (UsageError, "kind")),
        ("translator", {"form": "svg", "layer": 9}, (UsageError, "layer", "1", "2")),
        ("translator", {"form": "svg", "head": 9}, (UsageError, "head", "1", "3")),
        ("tagger", {"form": "svg", "kind": "cross"}, (UsageError, "kind")),
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
    export: Export, models: Models, number: Number, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As means over what looks and sums over what is looked at."""
    shown = {"form": "svg", "kind": "encoder", "target": TARGET}
    whole = export("translator", **shown)[0]
    weight_HQK = np.concatenate(record(models.load(number("translator")).task, SOURCE, TARGET).weights["encoder"])
    heads = len(weight_HQK)
    assert len(opacities(whole)) == weight_HQK.size
    assert SMALLER not in seen_and_said(whole)[0]
    monkeypatch.setattr(exports, "SQUARES", heads * 4 + 3)
    small = export("translator", **shown)[0]
    for part in seen_and_said(small):
        assert SMALLER in part
    cells = downsample(weight_HQK, 2).reshape(heads, 4)
    np.testing.assert_allclose(opacities(small), (cells / cells.max(1, keepdims=True)).ravel(), atol=6e-4)


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
