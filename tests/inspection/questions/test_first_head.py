"""The first head to show, compared with a plain loop over ablated heads."""

import math
import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.inputs import by_word
from regard.inspection.forward.passes import forward_pass
from regard.inspection.questions import first_head as module
from regard.inspection.questions.answers import export_file
from regard.inspection.questions.first_head import FirstHead, first_head
from regard.inspection.requests import Request
from tests.inspection.payloads import unpack
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, before, put, translator

Ask = Callable[..., tuple[dict[str, Any], dict[str, np.ndarray]]]
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


def test_it_is_the_one_without_which_a_word_loses_most(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    best, wanted = by_loop(ask)
    assert best > 0
    monkeypatch.setattr(module, "LEAST", best / 2)
    monkeypatch.setattr(module, "POINTS", 2.0)
    seen, _ = ask("look", "translator", target=TARGET, opening="cross")
    assert tuple(seen["opening"][name] for name in ("layer", "head", "query")) == wanted


@pytest.mark.one_of(4)
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


class Crafted:
    """A pass of a translator whose weights and losses are made up.

    Args:
        models: with a translator alone.
        patch: undone at the end.
    """

    def __init__(self, models: Models, patch: pytest.MonkeyPatch) -> None:
        self.models, self.loaded, self._patch = models, models.load(0), patch
        self.asked = Request(text=SOURCE, target=TARGET)
        self.one = forward_pass(models, self.asked)
        self.record = self.one.record
        self.rows = [word for word, _ in self.record.words("cross")[0]]
        self.keys = [word for word, _ in self.record.words("cross")[1]]

    def found(self, looks: dict[Place, dict[str, str]], losses: dict[Place, dict[str, float]]) -> Any:
        """The opening where heads look so, word by word, else at the full stop, and so much is lost without them."""
        queries, keys = self.record.words("cross")
        layers, heads = len(self.record.weights["cross"]), len(self.record.weights["cross"][0])
        weights = np.zeros((layers, heads, len(self.record.written), len(self.record.source)), np.float32)
        stop = keys[self.keys.index(".")][1][0]
        for layer, head in np.ndindex(layers, heads):
            for word, places in queries:
                at = looks.get((layer + 1, head + 1), {}).get(word)
                weights[layer, head, places, stop if at is None else keys[self.keys.index(at)][1][0]] = 1

        def falls(*given: Any) -> Any:
            rows, sharp_LHR = given[3], given[4]
            found = np.zeros_like(sharp_LHR)
            for (layer, head), lost in losses.items():
                found[layer - 1, head - 1] = [lost.get(row.word, 0.0) for row in rows]
            return found

        self._patch.setattr(module, "_losses", falls)
        record = replace(self.record, weights={**self.record.weights, "cross": list(weights)})
        made = replace(self.one, record=record)
        one = first_head(self.models, self.loaded, self.asked, made, "cross")
        return one and (one.layer, one.head, self.rows[one.query])


@pytest.fixture
def crafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crafted:
    return Crafted(Models([put(tmp_path / "model", translator())]), monkeypatch)


def test_a_word_that_stands_for_another_comes_first(crafted: Crafted) -> None:
    looks = {(1, 1): {"Tier": "animal"}, (2, 3): {"es": "animal"}}
    assert crafted.found(looks, {(1, 1): {"Tier": 0.9}, (2, 3): {"es": 0.1}}) == (2, 3, "es")
    assert crafted.found(looks, {(1, 1): {"Tier": 0.9}, (2, 3): {"es": 0.01}}) == (1, 1, "Tier")


def test_a_head_that_looks_at_a_mark_or_an_article_says_nothing(crafted: Crafted) -> None:
    losses = {(1, 1): {"Tier": 0.9}, (1, 2): {"Tier": 0.8}, (3, 2): {"Straße": 0.3}}
    assert crafted.found({(1, 1): {"Tier": "the"}, (3, 2): {"Straße": "street"}}, losses) == (3, 2, "Straße")


def test_what_matters_to_an_article_or_a_mark_is_no_finding(crafted: Crafted) -> None:
    looks = {(1, 1): {"die": "street", ",": "because"}, (2, 1): {"müde": "tired"}}
    assert crafted.found(looks, {(1, 1): {"die": 0.9, ",": 0.9}, (2, 1): {"müde": 0.2}}) == (2, 1, "müde")


def test_where_nothing_is_lost_the_sharpest_head_is_taken(crafted: Crafted) -> None:
    looks = {(1, 2): {"Tier": "animal"}, (3, 1): {"Tier": "animal", "Straße": "street", "müde": "tired"}}
    assert crafted.found(looks, {}) == (3, 1, "Tier")
    assert crafted.found({}, {}) is None


@pytest.mark.parametrize("name", ["classifier", "tagger", "encoder", "filler"])
def test_within_a_text_itself_and_its_neighbours_are_no_other_word(
    models: Models, number: Callable[[str], int], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Heads that look at the word before, behind, or at itself, and one that looks further."""
    monkeypatch.setattr(module, "_losses", lambda *given: np.zeros_like(given[4]))
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
    found = first_head(models, models.load_for(asked), asked, made, "encoder")
    assert found is not None
    assert (found.layer, found.head) == (2, 1)


def test_of_a_large_model_the_sharpest_heads_alone_are_tried(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the page comes as soon; how many is told by the sizes alone, so it is the same head everywhere."""
    passes: list[Any] = []
    ablated = module.read_ablated
    monkeypatch.setattr(module, "read_ablated", lambda *given: passes.append(given[1]) or ablated(*given))
    ask("look", "translator", target=TARGET, opening="cross")
    every, tried = len(passes), len(passes)
    assert every == 1 + 3 * 3
    for work in (1e6, 5e5, 1.0):
        passes.clear()
        monkeypatch.setattr(module, "WORK", work)
        seen, _ = ask("look", "translator", target=TARGET, opening="cross")
        assert seen["opening"] is not None
        assert len(passes) <= tried
        tried = len(passes)
    assert tried == 0


def test_a_file_begins_where_the_page_does(tmp_path: Path) -> None:
    models = Models([put(tmp_path / "model", translator())])

    def place(**given: Any) -> Any:
        page = export_file(models, {"text": SOURCE, "target": TARGET, "form": "html", **given})[0].decode()
        (payload,) = re.findall(r'id="payload"[^>]*>([A-Za-z0-9+/=]{1000,})', page)
        return unpack(b64decode(payload))[0]["place"]

    loaded, asked = models.load(0), Request(text=SOURCE, target=TARGET)
    found = first_head(models, loaded, asked, forward_pass(models, asked), "cross")
    assert isinstance(found, FirstHead)
    wanted = {"kind": "cross", "layer": found.layer, "head": found.head, "query": found.query, "whole": True}
    assert place() == wanted
    chosen = {"kind": "encoder", "layer": 1, "head": 2}
    assert place(**chosen) == {**chosen, "whole": False}
