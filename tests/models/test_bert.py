"""The heads of an encoder: what they have in common is the same in both, and their weights have their names."""

import pytest
import torch

from regard.nn.layout import Sequences
from tests.models.small_models import bert


@pytest.mark.parametrize("pool", ["first", "mean", "max"])
def test_a_token_is_a_word_of_one_piece(pool: str) -> None:
    head = bert(head="tags", pool=pool).head
    hidden = torch.randn(7, 12, dtype=torch.float64)
    each = head.words(hidden, Sequences.end_to_end([1] * 7))
    torch.testing.assert_close(head(hidden, Sequences.end_to_end([3, 4])), each, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pooler", [True, False])
def test_classes_are_scored_from_the_vector(pooler: bool) -> None:
    model = bert(head="classes", pool="mean", pooler=pooler)
    hidden = torch.randn(7, 12, dtype=torch.float64)
    vector = torch.stack([hidden[:3].mean(0), hidden[3:].mean(0)])
    if pooler:
        vector = torch.tanh(vector @ model.head.dense.weight.T + model.head.dense.bias)
    expected = vector @ model.head.classes.weight.T + model.head.classes.bias
    torch.testing.assert_close(model.head(hidden, Sequences.end_to_end([3, 4])), expected, rtol=0, atol=1e-12)
    names = [name for name in model.state_dict() if name.startswith("head.")]
    dense = ["head.dense.weight", "head.dense.bias"] if pooler else []
    assert names == [*dense, "head.classes.weight", "head.classes.bias"]
