"""Token vectors are those between the layers; paths keep their distances on the plane."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from regard.explore.forward.vector_space import layer_paths
from regard.system.errors import RegardError
from tests.explore.forward.small_scenes import alone, both, recurrent
from tests.refusals import refused


def test_vectors_are_those_between_the_layers() -> None:
    seen = both()
    model = seen.task.model
    with torch.no_grad():
        hidden_TD = seen.run()
        entered = model.encoder.input(torch.tensor([5, 6, 7, 8, 0]), torch.arange(5), 5)
    found = layer_paths([seen], "decoder").vectors[0]
    assert found.shape == (3, 3, 12)
    np.testing.assert_allclose(found[-1], hidden_TD.numpy(), atol=1e-6)
    np.testing.assert_allclose(layer_paths([seen], "encoder").vectors[0][0], entered.numpy(), atol=1e-6)


def test_paths_lie_on_one_plane() -> None:
    one = alone()
    other = dataclasses.replace(one, run=lambda: one.task.model.eval() and one.run())
    found = layer_paths([one, other], "decoder")
    assert [path.shape for path in found.paths] == [(3, 5, 2), (3, 5, 2)]
    np.testing.assert_array_equal(*found.paths)
    points = np.concatenate([each.reshape(-1, 12) for each in found.vectors])
    spread = ((points - points.mean(axis=0)) ** 2).sum()
    assert found.plane.share == pytest.approx(sum((path**2).sum() for path in found.paths) / spread, rel=1e-4)
    assert found.layer_cosines((0, 2), (1, 2)) == pytest.approx([1, 1, 1])
    wanted = [
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        for a, b in zip(*found.vectors[0][:, [1, 3]].transpose(1, 0, 2), strict=True)
    ]
    assert found.layer_cosines((0, 1), (1, 3)) == pytest.approx(wanted, abs=1e-5)


def test_a_recurrence_has_no_layers_to_follow() -> None:
    with refused(RegardError, "stack"):
        layer_paths([recurrent(score="dot")], "encoder")
