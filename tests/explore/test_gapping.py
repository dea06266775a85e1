"""Whole words left out of a sentence; what they are left out of is tested with the examples."""

from __future__ import annotations

from pathlib import Path

from regard.explore.gapping import gapped, validated


def test_what_stands_in_most_sentences_is_left_out_last() -> None:
    line = "because the brook because deep"
    drawn = {gapped(line, str(seed), ["because"]) for seed in range(20)}
    assert drawn == {"because the [MASK] because deep", "because the brook because [MASK]"}
    assert gapped(line, "1", ["because", "brook", "deep"]) not in (None, *drawn)
    assert gapped("Alone.", "1") is None
    assert gapped("nothing fits here", "1", (), lambda word, behind: False) is None
    assert gapped("it fits here", "1", (), lambda word, behind: not behind) == "[MASK] fits here"


def test_a_long_sentence_has_two_gaps_and_a_short_one_has_one() -> None:
    for words in range(2, 12):
        line = " ".join(f"word{'x' * n}" for n in range(words))
        found = gapped(line, "1")
        assert found is not None
        assert found.count("[MASK]") == (2 if words >= 7 else 1)
        assert set(found.split()) - {"[MASK]"} < set(line.split())


def test_without_a_run_there_is_nothing_to_leave_out_of(tmp_path: Path) -> None:
    assert validated(tmp_path) is None
