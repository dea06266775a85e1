"""Views of attention over patches, and attention distances compared with plain loops and convolutions."""

import base64
import json
import re
import struct
import xml.etree.ElementTree as Tree
import zlib
from typing import Any

import numpy as np
import pytest
import torch

from regard.inspection.forward.record import mean_distance, patch_distances
from regard.inspection.pictures.images import ImageView, data_url, distances, image_view, png_bytes, receptive_field
from regard.inspection.pictures.terminal_heatmap import ColourScheme
from regard.models.captured_attention import image_weights
from regard.system.errors import RegardError, UsageError
from regard.tasks.images.classifier import ImageClassification
from tests.refusals import refused
from tests.tasks.small_tasks import viewer

SIZES = {"layers": 3, "d_model": 16, "d_ff": 32, "heads": 2}
IMAGE = np.random.default_rng(1).integers(0, 10, 24)


def weights(task: ImageClassification) -> list[torch.Tensor]:
    (batch,) = task.batches(task.images([IMAGE]))
    return [layer[0] for layer in image_weights(task.model, batch)]


@pytest.mark.parametrize(("who", "query"), [("class", 0), ("1,1", 1), ("2,1", 3), ("3,2", 6)])
def test_a_row_of_the_weights_lies_as_the_patches_do(who: str, query: int) -> None:
    task = viewer(**SIZES)
    names, first, grids = image_view(task, IMAGE, 1, None, who).heads()
    assert names == [f"layer {layer} head {head}" for layer in (1, 2, 3) for head in (1, 2)]
    for place, grid in enumerate(grids):
        row = weights(task)[place // 2][place % 2, query]
        assert first[place] == pytest.approx(float(row[0]))
        assert grid.shape == (3, 2)
        for down in range(3):
            for across in range(2):
                assert grid[down, across] == pytest.approx(float(row[1 + 2 * down + across]))
        assert first[place] + grid.sum() == pytest.approx(1, abs=1e-5)


def test_who_looks_is_what_the_model_classifies_by() -> None:
    assert image_view(viewer(**SIZES), IMAGE, 1, None, None).who == "class"
    task = viewer(**SIZES, pool="mean")
    view = image_view(task, IMAGE, 1, None, None, layer=2, head=1)
    assert view.who == "mean"
    _, (first,), (grid,) = view.heads()
    expected = weights(task)[1][0, 1:].mean(0)
    np.testing.assert_allclose(grid.ravel(), expected[1:], atol=1e-6)
    assert first == pytest.approx(float(expected[0]), abs=1e-6)


def test_values_say_what_was_asked_for() -> None:
    task = viewer(**SIZES)
    values = json.loads(json.dumps(image_view(task, IMAGE, 7, "b", "2,2", layer=3).values()))
    shown = {"image": 7, "label": "b", "looks": "2,2", "layer": 3, "head": None}
    assert shown.items() <= values.items()
    assert values["said"].split()[0] == task.classify(IMAGE).label
    assert [one["name"] for one in values["heads"]] == ["layer 3 head 1", "layer 3 head 2"]
    for one in values["heads"]:
        assert one["class_token"] + np.sum(one["patches"]) == pytest.approx(1, abs=1e-4)


def test_the_terminal_shows_the_image_and_every_head() -> None:
    task = viewer(**SIZES)
    text = image_view(task, IMAGE, 2, "c", None).terminal(ColourScheme())
    assert text.startswith("image 2, labelled c, read as ")
    assert len(re.findall(r"layer \d head \d", text)) == 6
    assert "the image" in text
    one = image_view(task, IMAGE, 2, "", None, layer=2, head=2)
    rows = [line for line in one.terminal(ColourScheme(columns=100)).splitlines() if re.match(r"\d ", line)]
    assert len(rows) == 3
    assert "without a label" in one.terminal(ColourScheme())


def test_the_picture_holds_the_image_and_every_head() -> None:
    task = viewer(**SIZES)
    picture = image_view(task, IMAGE, 1, "<b>", None).svg()
    Tree.fromstring(picture)
    assert picture.count("to the class token</title>") == 6
    assert len(re.findall("<rect[^>]*fill-opacity", picture)) == 6 * 6
    assert "data:image/png;base64," in picture
    Tree.fromstring(image_view(task, IMAGE, 1, None, None, layer=1, head=1).svg())


@pytest.mark.parametrize(
    ("shown", "refusal"),
    [
        ({"layer": 4}, (UsageError, "layer", "1", "3")),
        ({"head": 0}, (UsageError, "head", "1", "2")),
        ({"who": "4,1"}, (UsageError, "token", "1,1", "3,2")),
        ({"who": "0,1"}, (UsageError, "token", "1,1", "3,2")),
        ({"who": "cat"}, (UsageError, "token", "cat")),
    ],
)
def test_what_is_not_there_is_said(shown: dict[str, Any], refusal: Any) -> None:
    with refused(*refusal):
        image_view(viewer(**SIZES), IMAGE, 1, None, **{"who": None, **shown})
    with refused(RegardError, "image", "6 x 4 x 1"):
        image_view(viewer(**SIZES), IMAGE[1:], 1, None, None)
    view = image_view(viewer(**SIZES), IMAGE, 1, None, None)
    with pytest.raises(UsageError):  # a view made of weights alone
        ImageView(view.pixels, 9.0, view.grid, view.record, view.name, layer=0)
    with refused(UsageError, "image"):
        distances(viewer(**SIZES), [])
    with refused(RegardError, "image", "6 x 4 x 1"):
        distances(viewer(**SIZES), drawn(1, 25))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_holds_its_pixels(channels: int) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (5, 7, channels)).astype(np.uint8)
    content = png_bytes(pixels)
    place, chunks = 8, {}
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        kind, data = content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        assert struct.unpack(">I", content[place + 8 + size : place + 12 + size])[0] == zlib.crc32(kind + data)
        chunks[kind], place = data, place + 12 + size
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (7, 5, 8, 0 if channels == 1 else 2, 0, 0, 0)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(5, 1 + 7 * channels)
    assert not rows[:, 0].any()
    np.testing.assert_array_equal(rows[:, 1:].reshape(5, 7, channels), pixels)


def test_brightness_is_scaled_to_a_byte() -> None:
    address = data_url(np.array([[[0], [8], [16], [99]]]), 16.0)
    content = base64.b64decode(address.partition(",")[2])
    assert content == png_bytes(np.array([[[0], [128], [255], [255]]], np.uint8))
    two = data_url(np.array([[[0, 16]]]), 16.0)  # no picture has two channels: their mean
    assert base64.b64decode(two.partition(",")[2]) == png_bytes(np.array([[[128]]], np.uint8))


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


def test_distances_of_patches_are_those_of_their_middles_and_even_attention_and_none_the_ends() -> None:
    distance, reach = patch_distances(3, 2, 2)
    even, own = np.full((1, 7, 7), 1 / 7), np.eye(7)[None] * 0.9 + 0.1 * np.eye(1, 7)[None]
    assert mean_distance(even, distance) == pytest.approx(distance.mean())
    assert mean_distance(own, distance) == pytest.approx(0)
    for one in range(6):
        for other in range(6):
            down, across = one // 2 - other // 2, one % 2 - other % 2
            assert distance[one, other] == pytest.approx(2 * (down**2 + across**2) ** 0.5)
            assert reach[one, other] == max(abs(down), abs(across))


def test_a_model_is_measured_over_all_its_images() -> None:
    task, images = viewer(**SIZES), drawn(19)
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


def test_the_table_holds_every_head() -> None:
    found = distances(viewer(**SIZES), drawn(2))
    lines = found.terminal().splitlines()
    assert len(lines) == 3 + 3
    assert [line.split()[0] for line in lines[3:]] == ["1", "2", "3"]
    assert lines[3].split()[-2:] == ["6", f"{found.within[0]:.1f}"]
    assert len(found.values()["layers"]) == 3
