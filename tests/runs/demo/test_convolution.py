"""The convolutional network beside the Vision Transformer: what it sees, and that its training resumes."""

from itertools import count
from math import hypot
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.inspection.pictures.images import receptive_field
from regard.runs.demo import convolution
from regard.runs.demo.convolution import CHANNELS, KERNEL, POOL, ConvolutionalNetwork, receptive_fields, train_cnn
from regard.runs.demo.images import corpus
from regard.system.errors import Stopped
from regard.training.log import Reporter


def test_what_a_layer_sees_is_the_receptive_field_of_the_formula() -> None:
    torch.manual_seed(3)
    found = receptive_fields(ConvolutionalNetwork(CHANNELS), corpus(16)[0])
    stack = [(KERNEL, 1), *[(POOL, POOL), (KERNEL, 1)] * (len(CHANNELS) - 1)]
    assert [layer.side for layer in found] == [receptive_field(stack[: 2 * layer + 1]) for layer in range(len(found))]
    assert all(0 < layer.distance < layer.side / 2**0.5 for layer in found)


def test_the_distance_is_that_of_a_plain_loop() -> None:
    torch.manual_seed(4)
    model, images = ConvolutionalNetwork((3, 4)), corpus(3)[0][:, 8:16, 10:18]
    first, second = receptive_fields(model, images)
    for layer, (found, wide, places) in enumerate([(first, 1, (1, 3, 5, 7)), (second, 2, (0, 1, 2, 3))]):
        means = []
        for image in images:
            pixels = (torch.from_numpy(image).float() / 255)[None, None].requires_grad_()
            for row, column in [(row, column) for row in places for column in places]:
                pixels.grad = None
                model.activations(pixels)[layer][0, :, row, column].sum().backward()
                assert pixels.grad is not None
                weight = pixels.grad[0, 0].abs().tolist()
                middle = [place * wide + (wide - 1) / 2 for place in (row, column)]
                far = [[hypot(y - middle[0], x - middle[1]) for x in range(8)] for y in range(8)]
                if total := sum(map(sum, weight)):
                    means.append(sum(weight[y][x] * far[y][x] for y in range(8) for x in range(8)) / total)
        assert found.distance == pytest.approx(np.mean(means), rel=1e-5)


def test_a_stopped_run_resumes_to_the_same_bits_and_a_finished_one_is_not_trained_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(convolution, "CHANNELS", (4, 6))
    parts = {"train": corpus(150), "valid": corpus(20, first=150)}

    def train(name: str, stop_at: int = 1000) -> ConvolutionalNetwork:
        calls = count(1)
        return train_cnn(tmp_path / name, parts, 5, 6, Reporter(), lambda: next(calls) >= stop_at, 1)

    whole = train("whole").state_dict()
    with pytest.raises(Stopped):
        train("stopped", 5)
    again = train("stopped")
    for name, weight in again.state_dict().items():
        assert torch.equal(weight, whole[name])
    log = tmp_path / "stopped" / "training" / "metrics.jsonl"
    steps = log.read_text().count('"kind": "step"')
    assert steps == 6
    train("stopped", stop_at=1)  # before a first step it would stop
    assert log.read_text().count('"kind": "step"') == steps
    kept = regard.load(tmp_path / "stopped", "cpu", model=ConvolutionalNetwork)
    np.testing.assert_array_equal(kept.classify(corpus(9)[0]), again.classify(corpus(9)[0]))
    assert not [path for path in Path(tmp_path).rglob("*") if path.suffix in (".pt", ".pkl", ".pth")]
