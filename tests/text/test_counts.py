"""Nouns and verbs agree with their number."""

import pytest

from regard.data.checks.findings import KINDS, pattern_draft
from regard.text.counts import agreeing, counted


def test_one_and_several() -> None:
    assert [counted(n, "pair") for n in (0, 1, 2, 2000)] == ["0 pairs", "1 pair", "2 pairs", "2,000 pairs"]
    assert [counted(n, "match", "matches") for n in (1, 3)] == ["1 match", "3 matches"]
    sentence = "[pair|pairs] [has|have] no [side]"
    assert [agreeing(sentence, n) for n in (1, 2)] == ["pair has no [side]", "pairs have no [side]"]


@pytest.mark.parametrize("kind", KINDS)
def test_findings_agree(kind: str) -> None:
    one, two = (pattern_draft(kind, count, 10, (), {"limit": 3, "seen": "x"}).finding.sentence for count in (1, 2))
    if kind != "bytes":
        assert one.startswith(("1 pair ", "1 line "))
        assert two.startswith(("2 pairs ", "2 lines "))
        assert one[1:] != two[1:]
    assert "[" not in one + two
    assert "|" not in one + two
