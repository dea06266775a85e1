"""A share of a corpus: by seed, nested, whatever the order, with places that can be found again."""

from itertools import pairwise
from pathlib import Path

import pytest

from regard.data.corpora.pairs import Subset, TwoFiles, uniform_hash
from regard.system.errors import UsageError
from tests.refusals import refused


@pytest.fixture
def corpus(tmp_path: Path) -> TwoFiles:
    numbers = [*range(2000), *range(50)]  # the first fifty twice
    (tmp_path / "a.en").write_text("".join(f"sentence {i}\n" for i in numbers))
    (tmp_path / "a.de").write_text("".join(f"Satz {i}\n" for i in numbers))
    return TwoFiles(tmp_path / "a.en", tmp_path / "a.de")


def test_about_as_many_as_asked_in_order_and_the_same_again(corpus: TwoFiles) -> None:
    for share in (0.125, 0.25, 0.5):
        part = Subset(corpus, share, 1)
        kept = list(part.examples())
        assert kept == [pair for pair in corpus.examples() if uniform_hash(pair, 1) < share]
        assert abs(len(kept) - share * 2050) < 4 * (2050 * share * (1 - share)) ** 0.5
        assert kept == list(part.examples())


def test_smaller_shares_are_parts_of_larger_ones_and_seeds_differ(corpus: TwoFiles) -> None:
    kept = [set(Subset(corpus, share, 1).examples()) for share in (0.125, 0.25, 0.5, 1)]
    assert all(small < large for small, large in pairwise(kept))
    assert kept[-1] == set(corpus.examples())
    other = set(Subset(corpus, 0.25, 2).examples())
    assert 0.1 < len(other & kept[1]) / len(other) < 0.4  # a quarter by chance


def test_equal_pairs_stay_together_wherever_they_stand(corpus: TwoFiles) -> None:
    kept = list(Subset(corpus, 0.5, 3).examples())
    assert all(kept.count((f"sentence {i}", f"Satz {i}")) in (0, 2) for i in range(50))


def test_places_are_those_of_the_files(corpus: TwoFiles) -> None:
    part = Subset(corpus, 0.25, 1)
    for number, (source, _) in enumerate(part.examples()):
        line = int(part.where(number, 0).rpartition(":")[2])
        assert corpus.source.read_text().splitlines()[line - 1] == source
    other = part.examples()
    next(other)  # a second pass, left half-way
    assert part.where(5, 1).startswith(str(corpus.target))
    assert part.name == f"0.25 of {corpus.name}"
    assert part.notes == corpus.notes


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan")])
def test_what_is_no_share(corpus: TwoFiles, share: float) -> None:
    with refused(UsageError, "--fraction"):
        Subset(corpus, share, 1)
