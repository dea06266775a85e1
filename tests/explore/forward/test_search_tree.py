"""The branches of the search tree are the hypotheses, and every node has its parent."""

from __future__ import annotations

import math

import pytest
import torch

from regard.config import Decoding, Recipe, TransformerSection
from regard.decoding.trace import Trace
from regard.explore.forward.outputs import branch, tree
from regard.models.build import transformer
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.vocabulary import learn_vocabularies
from tests.models.small_models import stir

SOURCE = "The animal didn't cross the street because it was too tired."
TARGET = "Das Tier überquerte die Straße nicht, weil es zu müde war."


@pytest.fixture(scope="module")
def task() -> Translation:
    vocabularies = learn_vocabularies([(SOURCE, TARGET)] * 3, 300)
    section = TransformerSection(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=4)
    model = transformer(section, vocabularies.source.size, vocabularies.target.size, key=3).eval()
    stir(model)
    with torch.no_grad():  # sharp enough to differ, and ends now and then
        model.output.weight.mul_(6)
    recipe = Recipe(model=section, decoding=Decoding(beam=4, max_extra=2, length_penalty=0.0))
    return Translation(recipe, vocabularies, model)


@pytest.mark.parametrize("beam", [1, 4])
def test_branches_are_the_hypotheses(task: Translation, beam: int) -> None:
    trace = Trace(3)
    (hypotheses,) = task.nbest([SOURCE], beam, beam, trace=trace)
    target = task.vocabularies.target
    nodes = tree(trace[0], target.piece)
    ends = [place for place, node in enumerate(nodes) if node.fate != "live"]
    found = {tuple(nodes[one].id for one in branch(nodes, end)): nodes[end] for end in ends}
    for hypothesis in hypotheses:
        tokens = tuple(hypothesis.tokens)
        end = found.get(tokens) or found[(*tokens, target.end)]
        assert end.log_probability == pytest.approx(hypothesis.score, abs=1e-4)
    assert all(node.parent < place for place, node in enumerate(nodes))
    parents = {node.parent for node in nodes}
    for place, node in enumerate(nodes):
        assert node.fate == "live" or place not in parents  # what went on may have been beaten at once
        before = nodes[node.parent] if node.parent >= 0 else None
        assert node.step == (before.step + 1 if before else 1)
        whole = (before.log_probability if before else 0) + math.log(node.probability)
        assert node.log_probability == pytest.approx(whole, abs=1e-4)
        assert node.piece == target.piece(node.id)
        assert len(node.others) == 3
        assert node.others[0][1] >= node.probability - 1e-9
    assert max(sum(node.step == step for node in nodes) for step in range(1, 4)) <= beam


def test_nothing_searched_is_no_tree() -> None:
    assert tree([], str) == []
    assert branch([], -1) == []
