import torch

from regard.models.inputs import pairs
from tests.models.small_models import batch, sentences


def test_a_batch_becomes_tensors() -> None:
    source, target = sentences([3, 2]), sentences([2, 4], seed=1)
    given = pairs(batch(source, target, tail=2, spare=1))
    assert given.source.ids_T.tolist() == [*source[0], *source[1], 0, 0]
    of = given.target.sequences
    assert (of.count, of.longest, of.size) == (2, 4, 8)
    assert of.lengths_B.tolist() == [2, 4, 0]
    assert of.starts_B.tolist() == [0, 2, 6]
    assert given.labels_T.dtype == torch.int64
    assert given.weight_T.tolist() == [1.0] * 6 + [0.0] * 2
