"""Cloze examples: whole words are replaced by gaps."""

from __future__ import annotations

from pathlib import Path

from regard.explore.folders.facts import make_cloze, validation_examples


def test_what_stands_in_most_sentences_is_left_out_last() -> None:
    line = "because the brook because deep"
    drawn = {make_cloze(line, str(seed), ["because"]) for seed in range(20)}
    assert drawn == {"because the [MASK] because deep", "because the brook because [MASK]"}
    assert make_cloze(line, "1", ["because", "brook", "deep"]) not in (None, *drawn)
    assert make_cloze("Alone.", "1") is None
    assert make_cloze("nothing fits here", "1", (), lambda word, behind: False) is None
    assert make_cloze("it fits here", "1", (), lambda word, behind: not behind) == "[MASK] fits here"


def test_a_long_sentence_has_two_gaps_and_a_short_one_has_one() -> None:
    for words in range(2, 12):
        line = " ".join(f"word{'x' * n}" for n in range(words))
        found = make_cloze(line, "1")
        assert found is not None
        assert found.count("[MASK]") == (2 if words >= 7 else 1)
        assert set(found.split()) - {"[MASK]"} < set(line.split())


def test_without_a_run_there_is_nothing_to_leave_out_of(tmp_path: Path) -> None:
    assert validation_examples(tmp_path) is None
