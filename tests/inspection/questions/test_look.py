"""The page's view of a pass, compared with the pass itself and plain loops."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.passes import forward_pass
from regard.inspection.forward.record import record
from regard.inspection.questions import look
from regard.inspection.questions.answers import answer, stream_tokens
from regard.inspection.questions.look import SIDES, merge_heads
from regard.inspection.requests import Request
from regard.system.errors import UsageError
from regard.text.confidence import SeenWords
from tests.inspection.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, PIXELS, SOURCE, SPANNED, TARGET, put, recurrent

Ask = Callable[..., tuple[dict[str, Any], dict[str, np.ndarray]]]


@pytest.mark.parametrize("name", EVERY)
def test_every_model_is_seen(ask: Ask, models: Models, number: Callable[[str], int], name: str) -> None:
    values, arrays = ask("look", name)
    told = models.folder(number(name)).state(0)
    assert {kind: [one["layers"], one["heads"]] for kind, one in values["kinds"].items()} == told["kinds"]
    lengths = {side: len(values[side]) for side in values["words"]}
    assert set(lengths) >= {"source", "target", "written"}
    for kind, one in values["kinds"].items():
        assert (one["queries"], one["keys"]) == SIDES[kind]
        queries, keys = lengths[one["queries"]], lengths[one["keys"]]
        assert arrays[f"weights.{kind}"].shape == (one["layers"], one["heads"], queries, keys)
        np.testing.assert_allclose(arrays[f"weights.{kind}"].sum(-1), 1, atol=1e-5)
    for side, words in values["words"].items():
        assert sorted(place for _, places in words for place in places) == list(range(lengths[side]))
    for some in (values["said"], values["probability"]):
        assert some is None or len(some) == lengths["written"]
    assert (values["said"] is None) == (name in ("classifier", "pairs", "reader", "tagger", "viewer", "encoder"))
    assert values["output"]["kind"] == {"words": "words", "nothing": "nothing"}.get(told["writes"], told["writes"])
    assert (values["image"] is None) == (name != "viewer")


def test_tokens_and_words(ask: Ask) -> None:
    values, _ = ask("look", "translator", target=TARGET)
    assert values["source"][-1] == {"text": "</s>", "start": len(SOURCE), "end": len(SOURCE), "special": True}
    assert "".join(SOURCE[one["start"] : one["end"]] for one in values["source"]) == SOURCE
    assert values["target"][0]["special"]
    assert not values["target"][1]["special"]
    assert values["target"][1:] == values["written"][:-1]
    assert (values["source_text"], values["target_text"]) == (SOURCE, TARGET)
    assert [word for word, _ in values["words"]["source"]][:4] == ["The", "animal", "didn't", "cross"]
    assert [word for word, _ in values["words"]["written"]][-2:] == [".", "</s>"]


def test_small_pictures_by_plain_loops(ask: Ask, task: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "SIDE", 4)
    _, arrays = ask("look", "translator", target=TARGET)
    wanted = record(task("translator"), SOURCE, TARGET)
    for kind, layers in wanted.weights.items():
        for layer, weight_HQK in enumerate(layers):
            for head, weight_QK in enumerate(weight_HQK):
                edges = [[size * part // 4 for part in range(5)] for size in weight_QK.shape]
                rows, columns = ([slice(*both) for both in pairwise(side)] for side in edges)
                cells = np.array([[weight_QK[row, column].sum(1).mean() for column in columns] for row in rows])
                picture = arrays[f"small.{kind}"][layer, head]
                np.testing.assert_allclose(picture, cells / cells.max() * 255, atol=0.51)
                assert arrays[f"largest.{kind}"][layer, head] == pytest.approx(cells.max(), rel=1e-5)
                assert picture.shape == (4, 4)
                assert picture.max() == 255


def test_pictures_of_few_tokens_are_the_weights(ask: Ask) -> None:
    _, arrays = ask("look", "translator", target=TARGET)
    for kind in ("encoder", "decoder", "cross"):
        weights = arrays[f"weights.{kind}"]
        largest = weights.max((2, 3), keepdims=True)
        np.testing.assert_allclose(arrays[f"largest.{kind}"], largest[..., 0, 0])
        np.testing.assert_allclose(arrays[f"small.{kind}"], weights / largest * 255, atol=0.51)


def test_many_weights_are_not_sent_at_once(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    _, arrays = ask("look", "tagger")
    monkeypatch.setattr(look, "FEW", arrays["weights.encoder"].size)
    assert "weights.encoder" in ask("look", "tagger")[1]
    monkeypatch.setattr(look, "FEW", arrays["weights.encoder"].size - 1)
    _, fewer = ask("look", "tagger")
    assert sorted(fewer) == sorted(name for name in arrays if name != "weights.encoder")


def test_an_image_is_sent_with_its_patches(ask: Ask) -> None:
    values, arrays = ask("look", "viewer")
    assert values["image"] == {"rows": 3, "columns": 2, "label": None}
    np.testing.assert_array_equal(arrays["pixels"], np.round(np.array(PIXELS) / 9 * 255).reshape(6, 4, 1))
    assert arrays["pixels"].dtype == np.uint8
    assert [one["text"] for one in values["source"]][:3] == ["class", "1,1", "1,2"]
    assert [word for word, _ in values["words"]["source"]] == [one["text"] for one in values["source"]]


def test_gaps_are_special(ask: Ask) -> None:
    values, _ = ask("look", "filler")
    assert [one["text"] for one in values["source"] if one["special"]] == ["[CLS]", "[MASK]", "[MASK]", "</s>"]
    assert len(values["output"]["gaps"]) == 2
    values, _ = ask("look", "spanner", text=SPANNED, target="<extra_0> cat")
    assert [one["text"] for one in values["source"] if one["special"]] == ["<extra_0>", "<extra_1>", "</s>"]


def test_heads_and_their_merges(ask: Ask) -> None:
    _, arrays = ask("look", "translator")

    def got(kind: str, **how: Any) -> np.ndarray:
        return ask("head", "translator", kind=kind, **how)[1]["weight"]

    for kind in ("encoder", "decoder", "cross"):
        weights = arrays[f"weights.{kind}"]
        np.testing.assert_array_equal(got(kind, merge="head", layer=2, head=3), weights[1, 2])
        np.testing.assert_allclose(got(kind, merge="mean", layer=2, head=None), weights[1].mean(0), atol=1e-6)
        np.testing.assert_allclose(got(kind, merge="mean"), weights.mean((0, 1)), atol=1e-6)
        np.testing.assert_array_equal(got(kind, merge="max", layer=1), weights[0].max(0))
        np.testing.assert_array_equal(got(kind, merge="max"), weights.max((0, 1)))


@pytest.mark.parametrize(("name", "kind"), [("translator", "cross"), ("translator", "decoder"), ("viewer", "encoder")])
def test_what_every_head_gives_from_one_token_or_several(ask: Ask, name: str, kind: str) -> None:
    weights = ask("look", name)[1][f"weights.{kind}"]
    for places in ([0], [2], [1, 3]):
        found = ask("row", name, kind=kind, places=places)[1]["weight"]
        assert found.shape == (*weights.shape[:2], weights.shape[3])
        for layer, head in np.ndindex(*weights.shape[:2]):
            wanted = sum(weights[layer, head, place] for place in places) / len(places)
            np.testing.assert_allclose(found[layer, head], wanted, atol=1e-6)
    for wrong in ([], [99], None):
        with refused(UsageError, "places", "0"):
            ask("row", name, kind=kind, places=wrong)


def test_what_was_written_can_be_forced_again(ask: Ask) -> None:
    """By its pieces, also upon a model that would write something else."""
    own, _ = ask("look", "translator")
    changes = {"off": [["cross", layer, head] for layer in (1, 2, 3) for head in (1, 2, 3)]}
    other, _ = ask("look", "translator", changes=changes)
    again, _ = ask("look", "translator", changes=changes, branch=own["branch"])
    assert other["branch"] != own["branch"] == again["branch"]
    assert again["written"] == own["written"]
    assert again["probability"] != own["probability"]
    assert ask("look", "classifier")[0]["branch"] is None


def test_distances_in_an_image_are_those_of_patches(ask: Ask) -> None:
    _, arrays = ask("look", "viewer")
    for layer, head in np.ndindex(2, 3):
        weight_QK, away = arrays["weights.encoder"][layer, head].astype(float), []
        for query in range(6):
            seen = weight_QK[query + 1, 1:]
            far = [np.hypot(query // 2 - key // 2, query % 2 - key % 2) for key in range(6)]
            away.append(sum(seen * far) / sum(seen))
        assert arrays["measures.encoder"][layer, head, 1] == pytest.approx(np.mean(away), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("translator", {}, (UsageError, "kind")),
        ("translator", {"kind": "cross", "merge": "rollout"}, (UsageError, "merge")),
        ("translator", {"kind": "cross", "merge": "sum"}, (UsageError, "merge")),
        ("translator", {"kind": "cross", "layer": 1}, (UsageError, "head")),
        ("translator", {"kind": "cross", "layer": 4, "head": 1}, (UsageError, "--layer", "1", "3")),
        ("translator", {"kind": "encoder", "merge": "mean", "layer": 3}, (UsageError, "--layer", "1", "2")),
        ("translator", {"kind": "encoder", "merge": "rollout", "layer": 3}, (UsageError, "--layer", "1", "2")),
        ("translator", {"kind": "cross", "layer": 1, "head": 4}, (UsageError, "--head", "1", "3")),
        ("tagger", {"kind": "decoder", "merge": "mean"}, (UsageError, "--kind")),
        ("translator", {"kind": "cross", "layer": 0, "head": 1}, (UsageError, "layer", "1")),
        ("translator", {"kind": "cross", "query": 0}, (UsageError, "query")),
    ],
)
def test_what_is_not_there(ask: Ask, name: str, given: dict[str, Any], refusal: Any) -> None:
    with refused(*refusal):
        ask("head", name, **given)


def test_a_model_without_attention_can_be_looked_at(tmp_path: Any) -> None:
    models = Models([put(tmp_path, recurrent(score="none"))])
    values, arrays = unpack(answer(models, "look", {"text": SOURCE}))
    assert (values["kinds"], arrays) == ({}, {})
    assert values["output"]["text"]
    with pytest.raises(UsageError):
        merge_heads(forward_pass(models, Request(text=SOURCE)).record, "cross", "mean", None, None)


def test_words_that_training_never_saw_are_named(ask: Ask, models: Models, number: Callable[[str], int]) -> None:
    task, text = models.load(number("translator")).task, "The street cross animal."
    assert ask("look", "translator", text=text)[0]["unseen"] is None
    assert ask("look", "classifier")[0]["unseen"] is None
    task.assets = replace(task.assets, seen=SeenWords.of({"animal": 3, "street": 1}))
    try:
        words = ask("look", "translator", text=text + " It")[0]["unseen"]
    finally:
        task.assets = replace(task.assets, seen=None)
    assert words == [["The", 0, 3], ["cross", 11, 16], ["It", 25, 27]]


@pytest.mark.parametrize(("below", "unsure"), [(None, None), (1.0, True), (1e-9, False)])
def test_the_page_learns_how_sure_the_model_is_of_its_own_text(
    ask: Ask, models: Models, number: Callable[[str], int], below: float | None, unsure: bool | None
) -> None:
    task = models.load(number("translator")).task
    task.assets, text = replace(task.assets, doubted_below=below), f"The animal {below}"
    try:
        values = ask("look", "translator", text=text)[0]
        forced = ask("look", "translator", text=text, target=TARGET)[0]
        *tokens, last = stream_tokens(models, {"model": number("translator"), "text": text})
        filled = ask("look", "spanner")[0]
    finally:
        task.assets = replace(task.assets, doubted_below=None)
    probabilities = values["probability"]
    assert values["confidence"] == pytest.approx(np.prod(probabilities) ** (1 / len(probabilities)))
    assert (values["unsure"], last["unsure"]) == (unsure, unsure)
    streamed = [token["probability"] for token in tokens]  # without </s>, as the search was cut off
    assert probabilities[:-1] == pytest.approx(streamed, rel=1e-4)
    assert last["confidence"] == pytest.approx(np.prod(streamed) ** (1 / len(streamed)))
    assert (forced["confidence"], forced["unsure"]) == (None, None)
    assert filled["unsure"] is None
    assert ask("look", "classifier")[0]["confidence"] is None


def test_pieces_that_no_training_text_has_are_on_no_map(ask: Ask, models: Models, number: Callable[[str], int]) -> None:
    task, given = models.load(number("filler")).task, {"count": 5000, "text": "animal"}
    before = ask("map", "filler", **given)[0]
    marked, others = before["ids"][: len(before["marked"])], before["ids"][len(before["marked"]) :]
    assert before["unseen"] is None
    task.assets = replace(task.assets, seen=SeenWords.of({}, unseen_pieces=((marked[0], *others[:7]),)))
    try:
        found, every = (ask("map", "filler", **given, unseen=shown)[0] for shown in (False, True))
    finally:
        task.assets = replace(task.assets, seen=None)
    assert found["unseen"] == every["unseen"] == 8
    assert found["ids"] == [*marked, *others[7:]]  # what the text has is shown, seen or not
    assert every["ids"] == before["ids"]
