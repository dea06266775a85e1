"""Sequential steps and path lengths by formula equal those of the graph of what is computed from what."""

import math
from collections import deque
from itertools import product
from typing import Any

import pytest

from regard.config import BertSection, RnnSection, TransformerSection
from regard.models.complexity import costs

Node = tuple[object, ...]
Graph = dict[Node, list[Node]]
"""Each operation, a layer at a position, with those that it waits for; words wait for nothing."""


def recurrent_graph(model: RnnSection, n: int, m: int) -> Graph:
    waits: Graph = {}
    directions = ("forwards", "backwards") if model.two_way else ("forwards",)
    for layer, way, i in product(range(model.encoder_layers), directions, range(n)):
        below = [("source", i)] if not layer else [("read", layer - 1, other, i) for other in directions]
        before = i - 1 if way == "forwards" else i + 1
        carried = [("read", layer, way, before)] if 0 <= before < n else []
        waits["read", layer, way, i] = below + carried
    top, deep = model.encoder_layers - 1, model.decoder_layers
    ends = [("read", top, way, n - 1 if way == "forwards" else 0) for way in directions]
    for layer, j in product(range(deep), range(m)):
        below = [("target", j)] if not layer else [("write", layer - 1, j)]
        if model.input_feeding and not layer and j:
            below.append(("look", j - 1))
        waits["write", layer, j] = below + ([("write", layer, j - 1)] if j else ends)
    if model.score != "none":
        for j in range(m):
            memory = [("read", top, way, i) for way in directions for i in range(n)]
            waits["look", j] = [("write", deep - 1, j), *memory]
    return waits


def transformer_graph(model: TransformerSection, n: int, m: int) -> Graph:
    waits: Graph = {}
    for layer, i in product(range(model.encoder_layers), range(n)):
        waits["read", layer, i] = [("read", layer - 1, k) if layer else ("source", k) for k in range(n)]
    for layer, j in product(range(model.decoder_layers), range(m)):
        memory: list[Node] = [("read", model.encoder_layers - 1, k) for k in range(n)]
        seen = [j] if model.decoder_cell else range(j + 1)
        before: list[Node] = [("write", layer, j - 1)] if model.decoder_cell and j else []
        below = [("write", layer - 1, k) if layer else ("target", k) for k in seen]
        waits["write", layer, j] = memory + before + below
    return waits


def longest_chain(waits: Graph) -> int:
    known: dict[Node, int] = {}

    def depth(node: Node) -> int:
        if node not in known:
            known[node] = 1 + max((depth(before) for before in waits[node]), default=0) if node in waits else 0
        return known[node]

    return max(map(depth, waits))


def distances_to(waits: Graph, ends: list[Node]) -> dict[Node, int]:
    """From every node the fewest operations to one of ``ends``, that one counted."""
    found, queue = dict.fromkeys(ends, 1), deque(ends)
    while queue:
        node = queue.popleft()
        for before in waits.get(node, []):
            if before not in found:
                found[before] = found[node] + (before in waits)
                queue.append(before)
    return found


def check(waits: Graph, outputs: list[list[Node]], said: list[list[Node]], model, n: int, m: int) -> None:
    """``outputs``: what an encoder gives at each position; ``said``: what a decoder does."""
    found = costs(model, n, m)
    assert found.sequential.value == longest_chain(waits)
    for count, ends in ((found.within, outputs), (found.across, said)):
        farthest = max(distances_to(waits, end)["source", i] for end in ends for i in range(n))
        assert count.value == farthest, count


@pytest.mark.parametrize("two_way", [True, False])
@pytest.mark.parametrize(("score", "feeding"), [("none", False), ("dot", False), ("additive", True)])
@pytest.mark.parametrize(("read", "write"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_recurrent_models(two_way: bool, score: str, feeding: bool, read: int, write: int) -> None:
    model = RnnSection(two_way=two_way, score=score, input_feeding=feeding, encoder_layers=read, decoder_layers=write)
    directions = ("forwards", "backwards") if two_way else ("forwards",)
    for n, m in ((5, 4), (4, 7), (9, 2)):
        waits = recurrent_graph(model, n, m)
        outputs = [[("read", read - 1, way, i) for way in directions] for i in range(n)]
        if not two_way:
            outputs = outputs[-1:]  # an earlier token hears nothing of a later one
        said: list[list[Node]] = [[("write", write - 1, j) if score == "none" else ("look", j)] for j in range(m)]
        if two_way and score != "none":
            said = said[:1]  # all others lie as near
        check(waits, outputs, said, model, n, m)


@pytest.mark.parametrize("cell", [None, "ssru"])
@pytest.mark.parametrize(("read", "write"), [(1, 1), (4, 2), (6, 6)])
def test_transformers(read: int, write: int, cell: Any) -> None:
    model = TransformerSection(encoder_layers=read, decoder_layers=write, decoder_cell=cell)
    for n, m in ((5, 4), (2, 7)):
        waits = transformer_graph(model, n, m)
        outputs: list[list[Node]] = [[("read", read - 1, i)] for i in range(n)]
        said: list[list[Node]] = [[("write", write - 1, j)] for j in range(m)]
        check(waits, outputs, said, model, n, m)


def test_formulas_give_their_numbers() -> None:
    for model in (
        RnnSection(),
        RnnSection(score="none"),
        RnnSection(score="none", two_way=False, encoder_layers=2, decoder_layers=3),
        RnnSection(input_feeding=True, encoder_layers=2),
        TransformerSection(),
        TransformerSection(decoder_cell="ssru"),
    ):
        for n, m in ((7, 5), (8, 11)):
            found = costs(model, n, m)
            for count in (found.sequential, found.within, found.across):
                said = count.formula.replace("⌈n/2⌉", str(math.ceil(n / 2))).replace("·", "*")
                assert eval(said, {"n": n, "m": m}) == count.value, count


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(ValueError):
        costs(BertSection(), 3, 3)
    with pytest.raises(ValueError):
        costs(RnnSection(), 0, 3)
