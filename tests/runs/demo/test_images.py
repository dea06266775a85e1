"""The made images: exactly two digits equal, no part of an image tells the answer; and the demonstration of them."""

import json

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.runs.demo import images as image_demo
from regard.runs.demo.images import GLYPHS, SIDE, corpus, demonstrate_images, nearest, several_digits
from regard.system.errors import Stopped


def test_an_image_is_a_pure_function_of_seed_and_number() -> None:
    images, labels = corpus(5, seed=3, first=10)
    for place in range(5):
        one = several_digits(10 + place, 3)
        np.testing.assert_array_equal(one.image, images[place])
        assert one.label == labels[place]
    assert not np.array_equal(corpus(1, seed=4)[0], corpus(1, seed=3)[0])
    assert corpus(0)[0].shape == (0, SIDE, SIDE)


def test_one_digit_stands_there_twice_and_no_quarter_tells_the_label() -> None:
    made = [several_digits(number) for number in range(3000)]
    for one in made[:200]:
        assert sorted(one.digits.count(digit) for digit in set(one.digits)) == [1, 1, 2]
        assert one.digits.count(one.label) == 2
    for place in range(4):
        right = np.mean([one.digits[place] == one.label for one in made])
        assert abs(right - 0.5) < 0.04  # as often as a place is one of the two
    assert np.bincount([one.label for one in made], minlength=10).min() > 240
    pairs = [tuple(place for place in range(4) if one.digits[place] == one.label) for one in made]
    assert min(pairs.count(pair) for pair in set(pairs)) > 420
    assert len(set(pairs)) == 6


def test_digits_are_all_different_and_in_their_quarters() -> None:
    assert GLYPHS.shape == (10, 7, 5)
    assert len({glyph.tobytes() for glyph in GLYPHS}) == 10
    for number in range(50):
        quarters = several_digits(number).image.reshape(2, 16, 2, 16)
        assert ((quarters > 110).sum((1, 3)) > 20).all()


@pytest.mark.long(minutes=0.04)
def test_the_demonstration_runs_from_nothing_to_a_picture(tmp_path, monkeypatch, capsys) -> None:
    for name, value in (("TRAIN", 200), ("VALID", 20), ("TEST", 20)):
        monkeypatch.setattr(image_demo, name, value)
    monkeypatch.setitem(image_demo.RECIPE, "model", {"layers": 2, "patch": 8, "d_model": 16, "d_ff": 32, "heads": 2})
    with pytest.raises(Stopped):
        demonstrate_images(tmp_path / "stopped", steps=2, threads=1, should_stop=lambda: True)
    assert main(["demo", "--images", "--without", "norm", "--output", str(tmp_path / "ablated")]) == 2
    words = ["demo", "--images", "--output", str(tmp_path / "demo"), "--threads", "1", "--steps", "3"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    rows = ("this model", "(CNN)", "nearest pixels", "one digit", "attention distance", "convolutions", "receptive")
    assert [row for row in rows if row not in shown] == []
    assert main([*words, "--json"]) == 0  # finished: said at once, scored again
    found = json.loads(capsys.readouterr().out)
    assert [layer["side"] for layer in found["receptive_fields"]] == [3, 8, 18, 38]
    assert (found["train"], found["test"], len(found["distances"]["layers"])) == (200, 20, 2)
    (tmp_path / "demo" / "images" / "test.npz").write_bytes(b"mine")
    assert main(words) == 1  # over nothing else
    recipe = regard.load(tmp_path / "demo" / "model").recipe
    assert (recipe.model.height, recipe.images.shift) == (32, 2)


def test_the_nearest_image_is_the_nearest() -> None:
    known, labels = corpus(60)
    asked, _ = corpus(9, first=60)
    far = np.square(asked[:, None].astype(int) - known[None].astype(int)).sum((2, 3))
    assert nearest(known, labels, asked, at_once=4).tolist() == labels[far.argmin(1)].tolist()
    assert nearest(known, labels, known, at_once=7).tolist() == labels.tolist()
