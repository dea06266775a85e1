import numpy as np

from regard.text.tokenizers.vocabulary import sample


def test_a_short_stream_is_kept_whole() -> None:
    assert sample(range(5), 10, seed=1) == [0, 1, 2, 3, 4]
    assert sample(iter(()), 10, seed=1) == []


def test_the_sample_is_a_function_of_the_seed_in_the_order_of_the_stream() -> None:
    found = sample(range(50_000), 100, seed=3)
    assert found == sample(iter(range(50_000)), 100, seed=3)
    assert found != sample(range(50_000), 100, seed=4)
    assert found == sorted(set(found))
    assert len(found) == 100


def test_every_item_is_as_likely_as_another() -> None:
    hits = np.zeros(40)
    for seed in range(3000):
        hits[sample(range(40), 10, seed)] += 1
    expected, deviation = 3000 / 4, np.sqrt(3000 * 0.25 * 0.75)
    assert np.abs(hits - expected).max() < 5 * deviation
