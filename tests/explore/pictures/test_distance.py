"""Attention distances, compared with a plain loop; receptive fields, compared with a convolution's gradient."""

import xml.etree.ElementTree as Tree

import numpy as np
import pytest
import torch

from regard.explore.forward.record import mean_distance, patch_distances
from regard.explore.pictures.images import distances, receptive_field
from regard.models.inspect.captured_attention import image_weights
from regard.system.errors import RegardError, UsageError
from tests.explore.pictures.small_images import image_classifier
from tests.refusals import refused


def drawn(count: int, values: int = 24) -> list[np.ndarray]:
    return list(np.random.default_rng(1).integers(0, 10, (count, values)))


@pytest.mark.parametrize("stack", [[(3, 1)], [(3, 1), (3, 1)], [(3, 2), (3, 1), (5, 2)], [(4, 4), (3, 1), (3, 1)]])
def test_receptive_field_is_where_the_gradient_of_one_output_lies(stack: list[tuple[int, int]]) -> None:
    layers = [torch.nn.Conv1d(1, 1, kernel, stride, bias=False) for kernel, stride in stack]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    read = torch.zeros(1, 1, 101, requires_grad=True)
    out = torch.nn.Sequential(*layers)(read)
    out[0, 0, out.shape[-1] // 2].backward()
    assert receptive_field(stack) == int((read.grad != 0).sum())


def test_distances_of_patches_are_those_of_their_middles() -> None:
    distance, reach = patch_distances(3, 2, 2)
    for one in range(6):
        for other in range(6):
            down, across = one // 2 - other // 2, one % 2 - other % 2
            assert distance[one, other] == pytest.approx(2 * (down**2 + across**2) ** 0.5)
            assert reach[one, other] == max(abs(down), abs(across))


def test_mean_distance_is_that_of_a_plain_loop() -> None:
    weight = torch.randn(2, 7, 7, generator=torch.Generator().manual_seed(1)).softmax(-1).double().numpy()
    distance, _ = patch_distances(3, 2, 2)
    for head in range(2):
        means = []
        for query in range(1, 7):
            seen = sum(weight[head, query, 1:])
            far = sum(weight[head, query, key] * distance[query - 1, key - 1] for key in range(1, 7))
            means.append(far / seen)
        assert mean_distance(weight, distance)[head] == pytest.approx(np.mean(means))


def test_even_attention_and_attention_to_oneself_are_the_ends() -> None:
    distance, _ = patch_distances(3, 2, 2)
    even, own = np.full((1, 7, 7), 1 / 7), np.eye(7)[None] * 0.9 + 0.1 * np.eye(1, 7)[None]
    assert mean_distance(even, distance) == pytest.approx(distance.mean())
    assert mean_distance(own, distance) == pytest.approx(0)


def test_a_model_is_measured_over_all_its_images() -> None:
    task, images = image_classifier(), drawn(19)
    found = distances(task, images)
    assert found.heads.shape == found.first.shape == (3, 2)
    distance, reach = patch_distances(3, 2, 2)
    (batch,) = task.batches(task.images(images))
    for layer, weights in enumerate(image_weights(task.model, batch)):
        assert len(weights) == 19
        each = [mean_distance(one.double().numpy(), distance) for one in weights]
        np.testing.assert_allclose(found.heads[layer], np.mean(each, axis=0), atol=1e-6)
        share = torch.stack(weights)[:, :, 1:, 0].mean((0, 2))
        np.testing.assert_allclose(found.first[layer], share, atol=1e-6)
    assert found.even == pytest.approx(distance.mean())
    assert found.fields == (6, 10, 14)
    near = [[distance[one, other] for other in range(6) if reach[one, other] <= 1] for one in range(6)]
    assert found.within[0] == pytest.approx(np.mean([np.mean(row) for row in near]))
    assert found.within[1:] == pytest.approx((found.even, found.even))
    assert task.model.training is False


def test_the_pictures_hold_every_head() -> None:
    found = distances(image_classifier(), drawn(2))
    lines = found.terminal().splitlines()
    assert len(lines) == 3 + 3
    assert [line.split()[0] for line in lines[3:]] == ["1", "2", "3"]
    assert lines[3].split()[-2:] == ["6", f"{found.within[0]:.1f}"]
    picture = found.svg()
    Tree.fromstring(picture)
    assert picture.count("<circle") == 6
    assert len(found.values()["layers"]) == 3


def test_what_is_no_image_is_said() -> None:
    with refused(UsageError, "image"):
        distances(image_classifier(), [])
    with refused(RegardError, "image", "6 x 4 x 1"):
        distances(image_classifier(), drawn(1, 25))
