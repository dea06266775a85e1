"""Confidences of words: pieces' probabilities by plain loops, and what they are mapped to."""

import math

import numpy as np
import pytest

from regard.tasks.metrics.calibration import expected_calibration_error, monotone_map
from regard.tasks.translation.word_confidence import Word, confidences, in_reference
from regard.text.confidence import Calibration
from tests.tasks.small_tasks import SOURCE, TARGET, translator


@pytest.mark.filterwarnings("ignore:line 1 is longer")
def test_a_words_probability_is_the_product_of_its_pieces() -> None:
    task = translator()
    task.recipe = task.recipe.model_copy(update={"data": task.recipe.data.model_copy(update={"max_tokens": 24})})
    for text in (SOURCE, f"{SOURCE} {TARGET}"):  # the second is cut
        [[best]] = task.nbest([text], prefixes=[TARGET[:20]])
        words = task.words(best)
        assert [best.text[word.begin : word.end] for word in words] == [word.text for word in words]
        assert "".join(word.text for word in words) == "".join(best.text.split())
        probability = 0.0
        for part in best.parts:
            probability += sum(part.token_log_probabilities[: len(part.tokens)])
        assert sum(one.confidence for one in task.word_log_probabilities(best)) <= probability + 1e-9
    assert len(best.parts) > 1
    whole = next(word for word in words if word.text.isalnum() and word.begin)
    task.assets = type(task.assets)(*vars(task.assets).values())
    object.__setattr__(task.assets, "calibration", Calibration(words=((-50.0, 0.25), (0.0, 0.75))))
    [mapped] = [word for word in task.words(best) if word.begin == whole.begin]
    assert mapped.confidence == pytest.approx(0.75 + math.log(whole.confidence) / 100, abs=1e-4)


def test_words_count_as_often_as_the_reference_has_them() -> None:
    said = "the dog saw the dog . the".split()
    assert in_reference(said, "The dog; the, the.") == [True, True, False, True, False, True, False]


def test_the_map_is_isotonic_and_what_it_gives_can_be_trusted() -> None:
    draw = np.random.default_rng(7)
    given = np.log(draw.uniform(0.01, 1, 8000))
    truth = 0.2 + 0.6 * np.exp(2 * given)
    right = draw.uniform(size=len(given)) < truth
    fitted = monotone_map(given[:6000], right[:6000])
    assert 5 < len(fitted) <= 20
    assert all(list(side) == sorted(set(side)) for side in zip(*fitted, strict=True))
    words = [Word("a", 0, 1, one) for one in given[6000:].tolist()]
    found, raw = (np.array([word.confidence for word in confidences(words, one)]) for one in (fitted, ()))
    assert raw == pytest.approx(np.exp(given[6000:]), abs=1e-6)
    errors = [expected_calibration_error(one, right[6000:], 10) for one in (raw, found)]
    assert errors[1] < 0.04 < errors[0]
    assert monotone_map(given[:999], right[:999]) == ()
    falling = monotone_map(given, given < np.median(given))
    assert len(falling) == 1
    assert falling[0] == pytest.approx((given.mean(), 0.5), abs=1e-4)


def test_the_map_is_scikit_learns() -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    draw = np.random.default_rng(8)
    given = draw.normal(size=2000)
    right = draw.uniform(size=2000) < 1 / (1 + np.exp(-given))
    parts = np.array_split(given.argsort(kind="stable"), 20)
    means = [given[part].mean() for part in parts]
    model = isotonic.IsotonicRegression().fit(means, [right[part].mean() for part in parts])
    wanted = np.unique(model.predict(means))
    assert [share for _, share in monotone_map(given, right)] == pytest.approx(wanted.tolist(), rel=1e-4)
