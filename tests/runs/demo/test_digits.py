"""The made images: exactly two digits equal, all labels alike often, and no part of an image tells the answer."""

import numpy as np

from regard.runs.demo.digits import GLYPHS, SIDE, corpus, several_digits


def test_an_image_is_a_pure_function_of_seed_and_number() -> None:
    images, labels = corpus(5, seed=3, first=10)
    for place in range(5):
        one = several_digits(10 + place, 3)
        np.testing.assert_array_equal(one.image, images[place])
        assert one.label == labels[place]
    assert not np.array_equal(corpus(1, seed=4)[0], corpus(1, seed=3)[0])
    assert corpus(0)[0].shape == (0, SIDE, SIDE)


def test_one_digit_stands_there_twice() -> None:
    for number in range(200):
        made = several_digits(number)
        assert sorted(made.digits.count(digit) for digit in set(made.digits)) == [1, 1, 2]
        assert made.digits.count(made.label) == 2


def test_no_quarter_tells_the_label() -> None:
    made = [several_digits(number) for number in range(3000)]
    for place in range(4):
        right = np.mean([one.digits[place] == one.label for one in made])
        assert abs(right - 0.5) < 0.04  # as often as a place is one of the two
    counts = np.bincount([one.label for one in made], minlength=10)
    assert counts.min() > 240
    pairs = [tuple(place for place in range(4) if one.digits[place] == one.label) for one in made]
    assert min(pairs.count(pair) for pair in set(pairs)) > 420
    assert len(set(pairs)) == 6


def test_digits_are_all_different_and_in_their_quarters() -> None:
    assert GLYPHS.shape == (10, 7, 5)
    assert len({glyph.tobytes() for glyph in GLYPHS}) == 10
    for number in range(50):
        image = several_digits(number).image.astype(int)
        for rows in (slice(0, 16), slice(16, 32)):
            for columns in (slice(0, 16), slice(16, 32)):
                assert (image[rows, columns] > 110).sum() > 20
