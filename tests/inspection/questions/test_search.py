"""Streamed generation equals generation at once, and what it is drawn from is a softmax."""

import contextvars
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regard.decoding.hypotheses import length_penalty
from regard.inspection.folders.models import Models
from regard.inspection.forward.outputs import scores
from regard.inspection.forward.passes import forward_pass, greedy_output
from regard.inspection.forward.record import text_inputs
from regard.inspection.questions.answers import stream_tokens
from regard.inspection.requests import AblationRequest, Request
from regard.nn.hooks import _PROBES
from regard.system.errors import RegardError, UsageError
from regard.tasks.text.task import decode_with_offsets
from tests.inspection.payloads import Ask, Number, TaskOf
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, SPANNED, TARGET, before


@pytest.fixture
def write(models: Models, number: Number) -> Callable[..., list[dict[str, Any]]]:
    def lines(name: str, **given: Any) -> list[dict[str, Any]]:
        return list(stream_tokens(models, {"model": number(name), **before(name), **given}))

    return lines


@pytest.mark.parametrize("name", ["translator", "recurrent"])
def test_a_translation_as_it_is_written(write: Any, task: TaskOf, name: str) -> None:
    *tokens, last = write(name, most=1, temperature=50, target=TARGET)
    (wanted,) = task(name).nbest([SOURCE], 1, 1)[0]
    assert tuple(token["id"] for token in tokens) == (*wanted.tokens, *([0] if wanted.finished else []))
    assert (last["done"], last["text"]) == (True, wanted.text)
    total = sum(math.log(token["probability"]) for token in tokens)
    alpha = task(name).recipe.decoding.length_penalty
    assert total / length_penalty(float(len(tokens)), alpha) == pytest.approx(wanted.score, rel=1e-6)
    for token in tokens:
        assert [token["piece"], token["probability"]] == token["others"][0]
        assert len(token["others"]) == 5
        shares = [share for _, share in token["others"]]
        assert shares == sorted(shares, reverse=True)


def test_missing_spans_as_they_are_written(write: Any, task: TaskOf) -> None:
    *tokens, last = write("spanner")
    this = task("spanner")
    ids = [token["id"] for token in tokens if token["id"] != this.assets.tokenizer.end]
    (written,) = this.nbest([SPANNED], beam=1)[0]
    assert ids == list(written.tokens)
    assert last["text"] == text_of(this, ids) == written.text


def text_of(task: Any, ids: list[int]) -> str:
    """Pieces as a text, the symbols of missing spans by name."""
    tokenizer = task.vocabularies.target if task.name == "translation" else task.assets.tokenizer
    return decode_with_offsets(tokenizer, ids, tokenizer.sentinels)[0]


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_a_text_goes_on(write: Any, task: TaskOf, temperature: float) -> None:
    *tokens, last = write("speaker", temperature=temperature, seed=3, most=9)
    this = task("speaker")
    (wanted,) = this.generate(SOURCE, temperature=temperature, seed=3, max_tokens=9)
    assert last["text"] == wanted.text
    assert sum(math.log(token["probability"]) for token in tokens) == pytest.approx(wanted.log_probability)
    assert len(tokens) <= 9
    if temperature:
        *others, _ = write("speaker", temperature=temperature, seed=4, most=9)
        assert [token["id"] for token in others] != [token["id"] for token in tokens]


def test_a_page_that_has_seen_it_written_is_shown_the_same(models: Models, number: Number, monkeypatch: Any) -> None:
    """What was just written is not searched for again, and the pass over its pieces says the same of them."""
    changes = {"off": [["cross", 1, 1], ["encoder", 2, 2]]}
    given = {"model": number("translator"), "text": "The animal was too tired.", "changes": changes}
    *tokens, last = stream_tokens(models, given)
    monkeypatch.setattr("regard.inspection.forward.passes.beam_search", None)
    without = AblationRequest(off=(("cross", 1, 1), ("encoder", 2, 2)))
    one = Request(number("translator"), text=given["text"], changes=without)
    ids = tuple(token["id"] for token in tokens)
    assert greedy_output(models, one) == tuple(id for id in ids if id)
    found = forward_pass(models, Request(one.model, text=one.text, branch=ids, changes=without))
    assert found.output["text"] == last["text"]
    assert found.probability is not None
    assert found.probability[: len(ids)] == pytest.approx([token["probability"] for token in tokens], rel=1e-4)
    for token, some in zip(tokens, found.said or [], strict=False):
        assert some[0].id == token["id"]


def test_nothing_stays_changed_while_somebody_reads(models: Models, number: Number) -> None:
    """Each token may be asked for by another thread; between two of them the model is whole."""
    given = {"model": number("translator"), "text": SOURCE, "changes": {"off": [["cross", 1, 1]]}}
    whole = list(stream_tokens(models, given))
    lines = stream_tokens(models, given)
    found = []
    for _ in whole:
        found.append(contextvars.copy_context().run(next, lines))
        assert _PROBES.get() == ()
    assert found == whole
    assert next(lines, None) is None
    assert whole != list(stream_tokens(models, {**given, "changes": None}))


def test_who_does_not_write(models: Models, number: Number) -> None:
    for given, refusal in (
        ({"model": number("tagger"), "text": SOURCE}, (UsageError, "model")),
        ({"model": number("translator"), "text": ""}, (RegardError, "text")),
        ({"model": number("speaker"), "text": SOURCE, "most": 0}, (UsageError, "most", "1")),
        ({"model": number("speaker"), "text": SOURCE, "temperature": "hot"}, (UsageError, "temperature")),
        ({"model": number("speaker"), "text": SOURCE, "beam": 2}, (UsageError, "beam")),
    ):
        with refused(*refusal):
            next(stream_tokens(models, given))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["translator", "recurrent", "spanner", "asker", "speaker"])
def test_a_tree_leads_to_what_was_found(ask: Ask, task: TaskOf, name: str) -> None:
    values, arrays = ask("tree", name, beam=3)
    assert arrays == {}
    nodes, this = values["nodes"], task(name)
    for number, node in enumerate(nodes):
        assert node["parent"] < number
        before = nodes[node["parent"]] if node["parent"] >= 0 else {"step": 0, "log_probability": 0.0}
        assert node["step"] == before["step"] + 1
        assert node["log_probability"] == pytest.approx(before["log_probability"] + math.log(node["probability"]))
        assert len(node["others"]) == 5
        assert node["others"][0][1] >= node["probability"] - 1e-9
        assert "<s>" not in dict(node["others"])
    parents = {node["parent"] for node in nodes}
    assert all(node["fate"] == "live" or number not in parents for number, node in enumerate(nodes))
    assert max(sum(node["step"] == step for node in nodes) for step in range(1, 4)) <= 3
    found = [one["score"] for one in values["hypotheses"]]
    assert found == sorted(found, reverse=True)
    for one in values["hypotheses"]:
        last = nodes[one["branch"][-1]]
        assert [nodes[place]["step"] for place in one["branch"]] == list(range(1, last["step"] + 1))
        assert one["score"] == pytest.approx(
            last["log_probability"] / length_penalty(float(last["step"]), values["length_penalty"])
        )
        assert (last["fate"] == "finished") == one["finished"]
        assert one["text"] == text_of(this, [id for place in one["branch"] if (id := nodes[place]["id"])])


def test_a_tree_of_a_translation_is_its_search(ask: Ask, task: TaskOf) -> None:
    values, _ = ask("tree", "translator", beam=4)
    wanted = task("translator").nbest([SOURCE], 4, 4)[0]
    assert [one["text"] for one in values["hypotheses"]] == [one.text for one in wanted]
    assert [one["score"] for one in values["hypotheses"]] == pytest.approx([one.score for one in wanted])
    changed, _ = ask("tree", "translator", beam=4, changes={"off": [["cross", 3, 1]]})
    assert changed["nodes"] != values["nodes"]
    narrow, _ = ask("tree", "translator", beam=1)
    (greedy,) = task("translator").nbest([SOURCE], 1, 1)[0]
    assert [node["id"] for node in narrow["nodes"]][: len(greedy.tokens)] == list(greedy.tokens)
    assert len(narrow["hypotheses"]) == 1


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, 0), (0.5, 0), (2.0, 3), (0.01, 5)])
def test_the_tokens_to_draw_from_are_those_of_a_plain_softmax(
    ask: Ask, task: TaskOf, temperature: float, top_k: int
) -> None:
    values, _ = ask("distribution", "speaker", place=2, temperature=temperature, top_k=top_k)
    score_V = scores(text_inputs(task("speaker"), SOURCE))[2].numpy()
    plain_V = np.exp(score_V - score_V.max())
    plain_V /= plain_V.sum()
    allowed = np.delete(np.arange(len(score_V)), task("speaker").symbols.without)
    kept = allowed[np.argsort(-score_V[allowed], kind="stable")][: top_k or None]
    share = np.exp((score_V[kept] - score_V[kept].max()) / temperature)
    share /= share.sum()
    shown = len(values["tokens"])
    np.testing.assert_allclose([one[2] for one in values["tokens"]], share[:shown], atol=1e-9)
    np.testing.assert_allclose([one[1] for one in values["tokens"]], plain_V[kept[:shown]], atol=1e-9)
    assert values["kept"] == (share > 0).sum()
