"""Links of words: their format, and the error rate."""

import numpy as np
import pytest

from regard.data.alignment.links import alignment_error_rate, read_gold, write_links
from tests.refusals import refused


def test_what_is_written_is_read() -> None:
    draw = np.random.default_rng(1)
    links = [frozenset(map(tuple, draw.integers(0, 12, (count, 2)).tolist())) for count in (0, 1, 7, 30)]
    assert [read_gold(write_links(one)) for one in links] == [(one, one) for one in links]
    assert write_links(frozenset([(1, 0), (0, 11), (0, 2)])) == "0-2 0-11 1-0"


def test_possible_links_hold_the_sure_ones() -> None:
    assert read_gold("0-1 2?3") == ({(0, 1)}, {(0, 1), (2, 3)})


@pytest.mark.parametrize("wrong", ["0-", "1", "a-b", "0-0,1-1", "-1-0", "0--1", "٣-١", "1234567890-1"])
def test_what_is_no_link_is_refused(wrong: str) -> None:
    with refused(where="a.txt:2"):
        read_gold(f"1-1 {wrong}", "a.txt:2")


def test_the_error_rate_is_that_of_the_formula() -> None:
    gold = [read_gold("0-0 1-1 2?1"), read_gold("0-0")]
    found = [read_gold("0-0 2-1 3-3")[0], read_gold("")[0]]
    assert alignment_error_rate(found, gold) == 1 - (1 + 2) / (3 + 3)
    assert alignment_error_rate([sure for sure, _ in gold], gold) == 0.0
    assert alignment_error_rate([possible for _, possible in gold], gold) == 0.0
    assert alignment_error_rate([frozenset()], [(frozenset(), frozenset())]) == 0.0
