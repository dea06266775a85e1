"""Embeddings, positions and paths through layers, compared with plain loops over the model."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.inspection.forward.record import text_inputs
from regard.inspection.questions.vectors import Plane, cosines, likeness, nearest, position_views
from regard.models.ablation import Ablations
from regard.models.captured_attention import streams
from tests.inspection.forward.small_scenes import both
from tests.inspection.payloads import Ask, TaskOf
from tests.tasks.small_tasks import EVERY, SOURCE, TARGET, before

SIDES = [(name, side) for name in ("translator", "recurrent", "spanner", "asker") for side in ("source", "target")]
SIDES += [(name, "source") for name in ("classifier", "filler", "speaker", "encoder")]
CONTROLS = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}
"""No tab, and no end of a line."""


def table(task: Any, side: str) -> tuple[Any, np.ndarray]:
    """The tokenizer and the rows of the model's first part."""
    tokenizer = getattr(task.vocabularies, side) if task.name == "translation" else task.assets.tokenizer
    reader = task.model.decoder if side == "target" or task.name == "language-model" else task.model.encoder
    return tokenizer, reader.input.tokens.weight.numpy()[: tokenizer.size].astype(float)


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_the_nearest_by_plain_loops(plain: Ask, task: TaskOf, name: str, side: str) -> None:
    tokenizer, rows = table(task(name), side)
    values, _ = plain("near", name, side=side, text="animal", count=7)
    ids = tokenizer.encode(" animal").ids
    assert [one["id"] for one in values["pieces"]] == min(ids, tokenizer.encode("animal").ids, key=len)
    id = values["id"]
    assert values["piece"] == tokenizer.piece(id) == max((one["piece"] for one in values["pieces"]), key=len)
    cosines = {}
    for other in tokenizer.ordinary.tolist():
        if other != id and not tokenizer.is_byte(other) and tokenizer.decode([other]) not in CONTROLS:
            cosines[other] = rows[id] @ rows[other] / np.linalg.norm(rows[id]) / np.linalg.norm(rows[other])
    wanted = sorted(cosines, key=lambda other: -cosines[other])[:7]
    assert [other for other, _, _ in values["near"]] == wanted
    assert [piece for _, piece, _ in values["near"]] == [tokenizer.piece(other) for other in wanted]
    assert [cosine for _, _, cosine in values["near"]] == pytest.approx([cosines[other] for other in wanted], rel=1e-5)


def test_the_nearest_of_a_piece_by_its_number(plain: Ask) -> None:
    by_text, _ = plain("near", "translator", side="target", text="Tier")
    by_id, _ = plain("near", "translator", side="target", id=by_text["id"])
    assert by_id == {**by_text, "pieces": []}
    symbol, _ = plain("near", "translator", side="target", id=0)
    assert symbol["piece"] == "</s>"
    assert len(symbol["near"]) == 12


def test_a_map_shows_what_differs_most(plain: Ask, task: TaskOf) -> None:
    tokenizer, rows = table(task("speaker"), "source")
    values, arrays = plain("map", "speaker", count=50, text="the animal, the street")
    ids = values["ids"]
    assert len(ids) == len(set(ids)) == len(arrays["place"]) == 50
    assert values["pieces"] == [tokenizer.piece(id) for id in ids]
    marked = [ids[place] for place in values["marked"]]
    assert set(marked) == set(tokenizer.encode(" the animal, the street").ids)
    assert not any(tokenizer.is_byte(id) for id in ids)
    centred = rows[ids] - rows[ids].mean(0)
    sizes = np.linalg.svd(centred, compute_uv=False) ** 2
    assert values["share"] == pytest.approx(sizes[:2].sum() / sizes.sum(), rel=1e-4)
    np.testing.assert_allclose((arrays["place"].astype(float) ** 2).sum(0), sizes[:2], rtol=1e-3)


@pytest.mark.parametrize("name", ["translator", "filler", "speaker"])
def test_bytes_that_no_text_has_are_near_nothing_and_on_no_map(plain: Ask, task: TaskOf, name: str) -> None:
    tokenizer, _ = table(task(name), "source")
    every = {tokenizer.decode([id]): id for id in tokenizer.ordinary.tolist()}
    assert len(CONTROLS & every.keys()) > 20  # a vocabulary of bytes has them
    near = [one for one, _, _ in plain("near", name, text="animal", count=100)[0]["near"]]
    mapped = plain("map", name, count=5000)[0]
    for ids in (near, mapped["ids"]):
        assert not CONTROLS & {tokenizer.decode([id]) for id in ids}
    assert every["\n"] in mapped["ids"]
    assert mapped["pieces"][mapped["ids"].index(every["\n"])] == "<0x0A>"
    told = plain("near", name, id=every["\x07"])[0]
    assert told["piece"] == "<0x07>"
    assert all(piece.isprintable() for _, piece, _ in told["near"])


def test_words_come_first(plain: Ask) -> None:
    values, _ = plain("map", "translator", side="source", count=12)
    assert values["marked"] == []
    letters = [piece.strip("▁") for piece in values["pieces"]]
    assert all(len(piece) > 1 and piece.isalpha() for piece in letters)
    assert plain("map", "translator", side="source", count=12)[0] == values


def test_a_map_of_fewer_pieces_than_are_marked(plain: Ask) -> None:
    values, arrays = plain("map", "speaker", count=1, text="the animal")
    assert values["marked"] == list(range(len(values["ids"])))
    assert arrays["place"].shape == (len(values["ids"]), 2)


def test_vectors_are_means_of_rows(plain: Ask, task: TaskOf) -> None:
    tokenizer, rows = table(task("translator"), "target")
    texts = ["Straße", "das Tier, müde", "x"]
    values, arrays = plain("vectors", "translator", side="target", texts=texts)
    for text, pieces, vector in zip(texts, values["pieces"], arrays["vector"], strict=True):
        ids = min(tokenizer.encode(text).ids, tokenizer.encode(f" {text}").ids, key=len)
        assert pieces == [tokenizer.piece(id) for id in ids]
        np.testing.assert_allclose(vector, np.mean([rows[id] for id in ids], axis=0), rtol=1e-5)


def test_sinusoids_are_the_formula_and_their_likeness_depends_on_distance_alone(plain: Ask) -> None:
    values, arrays = plain("places", "translator", stack="decoder", count=9)
    angle_TK = np.arange(9)[:, None] / 10000 ** (2 * np.arange(6) / 12)
    wanted_TD = np.stack([np.sin(angle_TK), np.cos(angle_TK)], axis=-1).reshape(9, 12)
    np.testing.assert_allclose(arrays["vector"], wanted_TD, atol=1e-6)
    expected = np.cos(angle_TK).mean(1)
    wanted_TT = [[expected[abs(one - other)] for other in range(9)] for one in range(9)]
    np.testing.assert_allclose(arrays["likeness"], wanted_TT, atol=1e-6)
    np.testing.assert_allclose(arrays["by_distance"], expected, atol=1e-6)
    assert (values["kind"], "bias" in arrays) == ("sinusoidal", False)


def test_kinds_of_positions(plain: Ask, task: TaskOf) -> None:
    values, arrays = plain("places", "classifier", stack="encoder", count=512)
    assert values["kind"] == "learned"
    np.testing.assert_array_equal(arrays["vector"], task("classifier").model.encoder.input.positions.weight[:64])
    values, arrays = plain("places", "spanner", stack="encoder", count=5)
    assert values["kind"] == "relative"
    assert arrays["bias"].shape == (3, 9)
    assert not arrays["vector"].any()
    assert plain("places", "recurrent", stack="encoder")[0]["kind"] == "none"
    values, arrays = plain("places", "viewer", stack="encoder")
    assert (values["kind"], len(arrays["vector"])) == ("learned", 7)


def on_a_plane(vectors: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
    """The share that two components have, and the vectors' distances within them."""
    points = np.concatenate([each.reshape(-1, each.shape[-1]) for each in vectors]).astype(float)
    middle = points.mean(0)
    _, sizes, axes = np.linalg.svd(points - middle, full_matrices=False)
    return float((sizes[:2] ** 2).sum() / (sizes**2).sum()), [(each - middle) @ axes[:2].T for each in vectors]


@pytest.mark.parametrize(("stack", "changes"), [("encoder", {}), ("decoder", {"positions": False})])
def test_paths_of_two_sentences(plain: Ask, task: TaskOf, stack: str, changes: dict[str, bool]) -> None:
    scenes = [{"text": SOURCE, "target": TARGET}, {"text": "The street was too tired.", "target": "Die Straße"}]
    pair = [[0, 2], [1, 3]]
    values, arrays = plain("drift", "translator", stack=stack, scenes=scenes, changes=changes, pair=pair)
    this = task("translator")
    vectors, tokens = [], []
    with Ablations(**changes).apply(this.recipe.model):
        for one in scenes:
            seen = text_inputs(this, one["text"], one["target"])
            vectors.append(torch.stack(streams(this.model, seen.run, stack)).numpy())
            tokens.append(seen.source if stack == "encoder" else seen.target)
    share, paths = on_a_plane(vectors)
    assert values["share"] == pytest.approx(share, rel=1e-4)
    for number, path in enumerate(paths):
        found = arrays[f"path.{number}"]
        assert found.shape == path.shape
        np.testing.assert_allclose(np.abs(found), np.abs(path), rtol=1e-3, atol=1e-4)  # an axis may point either way
        assert [one["text"] for one in values["tokens"][number]] == [token.text for token in tokens[number]]
    for layer, cosine in enumerate(values["alike"]):
        a, b = vectors[0][layer, 2], vectors[1][layer, 3]
        assert cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-4)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("name", [name for name in EVERY if name != "recurrent"])
def test_every_stack_can_be_followed(plain: Ask, task: TaskOf, name: str) -> None:
    for stack in ("encoder", "decoder"):
        if stack not in task(name).recipe.model.attention:
            continue
        values, arrays = plain("drift", name, stack=stack, scenes=[before(name)])
        layers = task(name).recipe.model.attention[stack][0]
        assert arrays["path.0"].shape == (layers + 1, len(values["tokens"][0]), 2)
        assert values["alike"] is None


DRAWN = np.random.default_rng(3)


def test_what_has_no_direction_is_near_to_nothing() -> None:
    table = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])
    assert cosines(table, table[0]).tolist() == [0, 0, 0, 0]
    assert cosines(table, table[1]).tolist() == [0, 1, 1, -1]
    assert nearest(table, 1, 10) == [(2, 1.0), (0, 0.0), (3, -1.0)]


def test_the_plane_is_that_of_the_largest_eigenvalues() -> None:
    points = DRAWN.normal(size=(40, 6)) * [5, 1, 3, 0.5, 0.2, 0.1] + 7
    found = Plane.fit(points)
    values, vectors = np.linalg.eigh(np.cov(points.T))
    assert found.share == pytest.approx(values[-2:].sum() / values.sum())
    for axis, vector in zip(found.axes_AD, vectors.T[:-3:-1], strict=True):
        assert abs(axis @ vector) == pytest.approx(1)
        assert axis[np.abs(axis).argmax()] > 0
    np.testing.assert_allclose(found.on(points).mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.on(points), (points - points.mean(axis=0)) @ found.axes_AD.T)


@pytest.mark.parametrize("points", [[[1.0, 2.0, 3.0]], [[1.0], [3.0]], [[2.0, 2.0]] * 4])
def test_few_points_lie_on_it_too(points: list[list[float]]) -> None:
    found = Plane.fit(np.array(points))
    assert found.on(np.array(points)).shape == (len(points), 2)
    assert np.isfinite(found.on(np.array(points))).all()
    assert found.share == pytest.approx(1)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_relative_positions_add_to_scores_by_distance(stack: str) -> None:
    seen = both(positions="relative", relative_buckets=8, relative_distance=16)
    part = getattr(seen.task.model, stack).input.positions
    vector_TD, bias_HX = position_views(seen.task.model, seen.task.recipe.model, stack, 3)
    assert not vector_TD.any()
    assert not likeness(vector_TD).any()
    assert bias_HX is not None
    before = [2, 1, 0]  # the bucket of what stands so far before the query
    behind = [5, 6] if stack == "encoder" else [0, 0]  # two-way: half of them are for what stands behind
    np.testing.assert_allclose(bias_HX.T, part.weight.detach().numpy()[before + behind], atol=1e-6)


def test_rotary_positions_turn_by_the_formula() -> None:
    seen = both(positions="rotary", d_k=6, rotary_base=100.0)
    vector_TD, bias_HX = position_views(seen.task.model, seen.task.recipe.model, "decoder", 9)
    angle_TK = np.arange(9)[:, None] * 100.0 ** (-np.arange(3) / 3)
    np.testing.assert_allclose(vector_TD, np.hstack([np.cos(angle_TK), np.sin(angle_TK)]), atol=1e-6)
    np.testing.assert_allclose(likeness(vector_TD)[0], np.cos(angle_TK).mean(1), atol=1e-6)
    assert bias_HX is None
