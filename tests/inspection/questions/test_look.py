"""The page's view of a pass, and the head that it shows first, compared with the pass itself and plain loops."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.passes import forward_pass
from regard.inspection.forward.record import by_word, downsample, measures
from regard.inspection.questions import look
from regard.inspection.questions.answers import answer, stream_tokens
from regard.inspection.questions.look import SIDES, first_head, merge_heads
from regard.inspection.requests import Request
from regard.system.errors import UsageError
from regard.text.confidence import SeenWords
from tests.inspection.payloads import Ask, Number, TaskOf, unpack
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, PIXELS, SOURCE, SPANNED, TARGET, before, put, recurrent, translator


@pytest.mark.one_of(5)
@pytest.mark.parametrize("name", EVERY)
def test_every_model_is_seen(ask: Ask, models: Models, number: Number, name: str) -> None:
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


@pytest.mark.parametrize("side", [4, 64])
def test_small_pictures_are_the_weights_or_means_of_them(ask: Ask, monkeypatch: pytest.MonkeyPatch, side: int) -> None:
    monkeypatch.setattr(look, "SIDE", side)
    _, arrays = ask("look", "translator", target=TARGET)
    for kind in ("encoder", "decoder", "cross"):
        small = np.stack([downsample(weight_HQK, side) for weight_HQK in arrays[f"weights.{kind}"]])
        largest = small.max((2, 3), keepdims=True)
        np.testing.assert_allclose(arrays[f"largest.{kind}"], largest[..., 0, 0], rtol=1e-6)
        np.testing.assert_allclose(arrays[f"small.{kind}"], small / largest * 255, atol=0.51)


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
    wanted = [measures(one, [True] + [False] * 6, (3, 2)).distance_H for one in arrays["weights.encoder"]]
    np.testing.assert_allclose(arrays["measures.encoder"][..., 1], wanted, rtol=1e-4)


def test_a_model_without_attention_can_be_looked_at(tmp_path: Any) -> None:
    models = Models([put(tmp_path, recurrent(score="none"))])
    values, arrays = unpack(answer(models, "look", {"text": SOURCE}))
    assert (values["kinds"], arrays) == ({}, {})
    assert values["output"]["text"]
    with pytest.raises(UsageError):
        merge_heads(forward_pass(models, Request(text=SOURCE)).record, "cross", "mean", None, None)


def test_words_that_training_never_saw_are_named(ask: Ask, task: TaskOf, monkeypatch: pytest.MonkeyPatch) -> None:
    this, text = task("translator"), "The street cross animal."
    assert ask("look", "translator", text=text)[0]["unseen"] is None
    assert ask("look", "classifier")[0]["unseen"] is None
    monkeypatch.setattr(this, "assets", replace(this.assets, seen=SeenWords.of({"animal": 3, "street": 1})))
    words = ask("look", "translator", text=text + " It")[0]["unseen"]
    assert words == [["The", 0, 3], ["cross", 11, 16], ["It", 25, 27]]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("below", "unsure"), [(None, None), (1.0, True), (1e-9, False)])
def test_the_page_learns_how_sure_the_model_is_of_its_own_text(
    ask: Ask, models: Models, number: Number, monkeypatch: pytest.MonkeyPatch, below: float | None, unsure: bool | None
) -> None:
    task, text = models.load(number("translator")).task, f"The animal {below}"
    monkeypatch.setattr(task, "assets", replace(task.assets, doubted_below=below))
    values = ask("look", "translator", text=text)[0]
    forced = ask("look", "translator", text=text, target=TARGET)[0]
    *tokens, last = stream_tokens(models, {"model": number("translator"), "text": text})
    filled = ask("look", "spanner")[0]
    probabilities = values["probability"]
    assert values["confidence"] == pytest.approx(np.prod(probabilities) ** (1 / len(probabilities)))
    assert (values["unsure"], last["unsure"]) == (unsure, unsure)
    streamed = [token["probability"] for token in tokens]  # without </s>, as the search was cut off
    assert probabilities[:-1] == pytest.approx(streamed, rel=1e-4)
    assert last["confidence"] == pytest.approx(np.prod(streamed) ** (1 / len(streamed)))
    assert (forced["confidence"], forced["unsure"]) == (None, None)
    assert filled["unsure"] is None
    assert ask("look", "classifier")[0]["confidence"] is None


def test_pieces_that_no_training_text_has_are_on_no_map(
    ask: Ask, task: TaskOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    this, given = task("filler"), {"count": 5000, "text": "animal"}
    before = ask("map", "filler", **given)[0]
    marked, others = before["ids"][: len(before["marked"])], before["ids"][len(before["marked"]) :]
    assert before["unseen"] is None
    unseen = SeenWords.of({}, unseen_pieces=((marked[0], *others[:7]),))
    monkeypatch.setattr(this, "assets", replace(this.assets, seen=unseen))
    found, every = (ask("map", "filler", **given, unseen=shown)[0] for shown in (False, True))
    assert found["unseen"] == every["unseen"] == 8
    assert found["ids"] == [*marked, *others[7:]]  # what the text has is shown, seen or not
    assert every["ids"] == before["ids"]


Place = tuple[int, int]
ARTICLES = ("the", "das", "die")
FORCED = {
    **dict.fromkeys(("translator", "recurrent", "asker"), TARGET),
    "spanner": "<extra_0> animal <extra_1> old street",
}
"""What untaught models are made to write: by themselves they write no words."""


def content(word: str) -> bool:
    return word[0].isalnum() and word.lower() not in ARTICLES


def worded(seen: dict[str, Any], weight_QK: Any, kind: str) -> Any:
    """The weights between words."""
    sides = seen["kinds"][kind]
    rows, columns = ([places for _, places in seen["words"][sides[side]]] for side in ("queries", "keys"))
    return by_word(np.asarray(weight_QK), rows, columns)


def by_loop(ask: Ask) -> tuple[float, tuple[int, int, int]]:
    """Of the translation that is forced: what a word loses without a head, times what that gives to one other word."""
    seen, arrays = ask("look", "translator", target=TARGET)
    layers, heads = (seen["kinds"]["cross"][size] for size in ("layers", "heads"))
    asked, read = ([word for word, _ in seen["words"][side]] for side in ("written", "source"))
    best, found = -1.0, (0, 0, 0)
    for layer in range(1, layers + 1):
        for head in range(1, heads + 1):
            other, _ = ask("look", "translator", target=TARGET, changes={"off": [["cross", layer, head]]})
            weight_QK = worded(seen, arrays["weights.cross"][layer - 1, head - 1], "cross")
            for row, (word, places) in enumerate(seen["words"]["written"]):
                if not content(word):
                    continue
                was, now = (math.prod(one["probability"][place] for place in places) for one in (seen, other))
                most = max(weight_QK[row, column] for column, key in enumerate(read) if content(key))
                if max(0.0, was - now) * most > best:
                    best, found = max(0.0, was - now) * most, (layer, head, row)
    assert asked[found[2]] not in ARTICLES
    return best, found


@pytest.mark.long(minutes=0.05)
def test_it_is_the_one_without_which_a_word_loses_most(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    best, wanted = by_loop(ask)
    assert best > 0
    monkeypatch.setattr(look, "LEAST", best / 2)
    monkeypatch.setattr(look, "POINTS", 2.0)
    seen, _ = ask("look", "translator", target=TARGET, opening="cross")
    assert tuple(seen["opening"][name] for name in ("layer", "head", "query")) == wanted


@pytest.mark.one_of(12)
@pytest.mark.parametrize("name", EVERY)
def test_there_is_one_for_every_model_of_texts(ask: Ask, name: str) -> None:
    """A row of whole words that looks at another; where a single query looks there is none to choose."""
    given = {"target": FORCED[name]} if name in FORCED else {}
    for kind in ask("look", name)[0]["kinds"]:
        seen, arrays = ask("look", name, opening=kind, **given)
        found = seen["opening"]
        if name == "viewer" or kind == "pool":
            assert found is None
            continue
        assert found == ask("look", name, opening=kind, **given)[0]["opening"]
        sides = seen["kinds"][kind]
        assert 1 <= found["layer"] <= sides["layers"]
        assert 1 <= found["head"] <= sides["heads"]
        word = seen["words"][sides["queries"]][found["query"]][0]
        assert word == "[MASK]" if name == "filler" else word[0].isalnum()
        weight_QK = worded(seen, arrays[f"weights.{kind}"][found["layer"] - 1, found["head"] - 1], kind)
        assert weight_QK[found["query"]].max() > 0


def test_it_is_asked_for_by_name_alone(ask: Ask) -> None:
    assert ask("look", "translator")[0]["opening"] is None
    assert ask("look", "classifier", opening="cross")[0]["opening"] is None


@pytest.fixture
def crafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The opening where heads of a translator look so, word by word, else at the full stop, and lose so much."""
    models, asked = Models([put(tmp_path / "model", translator())]), Request(text=SOURCE, target=TARGET)
    one = forward_pass(models, asked)
    record, (queries, keys) = one.record, one.record.words("cross")
    names = [word for word, _ in keys]

    def found(looks: dict[Place, dict[str, str]], losses: dict[Place, dict[str, float]]) -> Any:
        layers, heads = len(record.weights["cross"]), len(record.weights["cross"][0])
        weights = np.zeros((layers, heads, len(record.written), len(record.source)), np.float32)
        for layer, head in np.ndindex(layers, heads):
            for word, places in queries:
                at = looks.get((layer + 1, head + 1), {}).get(word, ".")
                weights[layer, head, places, keys[names.index(at)][1][0]] = 1

        def falls(*given: Any) -> Any:
            rows, fall_LHR = given[3], np.zeros_like(given[4])
            for (layer, head), lost in losses.items():
                fall_LHR[layer - 1, head - 1] = [lost.get(row.word, 0.0) for row in rows]
            return fall_LHR

        monkeypatch.setattr(look, "_losses", falls)
        made = replace(one, record=replace(record, weights={**record.weights, "cross": list(weights)}))
        first = first_head(models, asked, made, "cross")
        return first and (first.layer, first.head, queries[first.query][0])

    return found


def test_a_word_that_stands_for_another_comes_first(crafted: Callable[..., Any]) -> None:
    looks = {(1, 1): {"Tier": "animal"}, (2, 3): {"es": "animal"}}
    assert crafted(looks, {(1, 1): {"Tier": 0.9}, (2, 3): {"es": 0.1}}) == (2, 3, "es")
    assert crafted(looks, {(1, 1): {"Tier": 0.9}, (2, 3): {"es": 0.01}}) == (1, 1, "Tier")


def test_a_head_that_looks_at_a_mark_or_an_article_says_nothing(crafted: Callable[..., Any]) -> None:
    losses = {(1, 1): {"Tier": 0.9}, (1, 2): {"Tier": 0.8}, (3, 2): {"Straße": 0.3}}
    assert crafted({(1, 1): {"Tier": "the"}, (3, 2): {"Straße": "street"}}, losses) == (3, 2, "Straße")


def test_what_matters_to_an_article_or_a_mark_is_no_finding(crafted: Callable[..., Any]) -> None:
    looks = {(1, 1): {"die": "street", ",": "because"}, (2, 1): {"müde": "tired"}}
    assert crafted(looks, {(1, 1): {"die": 0.9, ",": 0.9}, (2, 1): {"müde": 0.2}}) == (2, 1, "müde")


def test_where_nothing_is_lost_the_sharpest_head_is_taken(crafted: Callable[..., Any]) -> None:
    looks = {(1, 2): {"Tier": "animal"}, (3, 1): {"Tier": "animal", "Straße": "street", "müde": "tired"}}
    assert crafted(looks, {}) == (3, 1, "Tier")
    assert crafted({}, {}) is None


@pytest.mark.parametrize("name", ["classifier", "tagger", "encoder", "filler"])
def test_within_a_text_itself_and_its_neighbours_are_no_other_word(
    models: Models, number: Number, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Heads that look at the word before, behind, or at itself, and one that looks further."""
    monkeypatch.setattr(look, "_losses", lambda *given: np.zeros_like(given[4]))
    asked = Request(model=number(name), text=before(name)["text"])
    seen = forward_pass(models, asked)
    one = seen.record
    queries = one.words("encoder")[0]
    layers, heads, size = len(one.weights["encoder"]), len(one.weights["encoder"][0]), len(one.source)
    weights = np.zeros((layers, heads, size, size), np.float32)
    for (layer, head), away in zip(np.ndindex(layers, heads), (0, 1, -1, 3, 0, 1), strict=True):
        for place, (_, places) in enumerate(queries):
            key = queries[(place + away) % len(queries)][1][0]
            weights[layer, head, places, key] = 1
    made = replace(seen, record=replace(one, weights={"encoder": list(weights)}))
    found = first_head(models, asked, made, "encoder")
    assert found is not None
    assert (found.layer, found.head) == (2, 1)


def test_of_a_large_model_the_sharpest_heads_alone_are_tried(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the page comes as soon; how many is told by the sizes alone, so it is the same head everywhere."""
    passes: list[Any] = []
    ablated = look.read_ablated
    monkeypatch.setattr(look, "read_ablated", lambda *given: passes.append(given[1]) or ablated(*given))
    ask("look", "translator", target=TARGET, opening="cross")
    every, tried = len(passes), len(passes)
    assert every == 1 + 3 * 3
    for work in (1e6, 5e5, 1.0):
        passes.clear()
        monkeypatch.setattr(look, "WORK", work)
        seen, _ = ask("look", "translator", target=TARGET, opening="cross")
        assert seen["opening"] is not None
        assert len(passes) <= tried
        tried = len(passes)
    assert tried == 0
