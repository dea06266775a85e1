"""Scores by kinds of sentences are those of the sentences alone."""

import pytest

from regard.system.errors import RegardError
from regard.tasks.metrics.bleu import score
from regard.tasks.metrics.breakdown import break_down, length
from regard.tasks.translation.guard import word_faults
from regard.text.confidence import SeenWords, WordCounter

TRAINED = ["a dog runs"] * 120 + ["a cat sleeps"] * 12 + ["a mole"]
SOURCES = ["A dog runs", "a cat runs", "the mole", "a dog " * 5, "a dog " * 12, "..."]
OUTPUTS = ["Ein Hund läuft Hund läuft", "a cat runs", "", "ein Hund", "ein Hund bellt", "..."]
REFERENCES = ["Ein Hund läuft", "Eine Katze läuft", "Der Maulwurf", "ein Hund", "ein Hund bellt laut", "…"]


def seen() -> SeenWords:
    counter = WordCounter()
    counter.add(TRAINED)
    return counter.seen_words()


@pytest.mark.parametrize("lowercase", [False, True])
def test_groups_have_the_scores_of_their_sentences(lowercase: bool) -> None:
    found = break_down(SOURCES, OUTPUTS, REFERENCES, ("en", "de"), seen(), word_faults, lowercase)
    assert (found.bleu, found.chrf) == (
        (whole := score(OUTPUTS, REFERENCES, "de", lowercase, samples=1)).bleu,
        whole.chrf,
    )
    longs = {"1 to 8": [0, 1, 2, 5], "9 to 12": [3], "13 to 16": [], "17 to 20": [], "21 or more": [4]}
    rares = {"never": [2], "1 to 9": [], "10 to 99": [1], "100 to 999": [0, 3, 4, 5], "1,000 or more": []}
    for groups, wanted in ((found.breakdown.by_length, longs), (found.breakdown.by_rarest_word, rares)):
        assert [(one.name, one.sentences) for one in groups] == [(name, len(rows)) for name, rows in wanted.items()]
        for one, rows in zip(groups, wanted.values(), strict=True):
            if rows:
                alone = score([OUTPUTS[i] for i in rows], [REFERENCES[i] for i in rows], "de", lowercase)
                assert one.scores == alone
            else:
                assert one.scores is None


def test_outputs_that_translate_nothing_are_counted() -> None:
    found = break_down(SOURCES, OUTPUTS, REFERENCES, ("en", "de"), None, word_faults)
    parts = found.breakdown
    assert (parts.empty, parts.copied, parts.looped) == pytest.approx((100 / 6, 100 / 6, 100 / 6))
    assert parts.by_rarest_word == ()
    text = "\n".join(found.lines())
    for said in ("BLEU (95 %)", "empty 16.7 %, copied 16.7 %, looped 16.7 %", "words of the source", "13 to 16"):
        assert said in text
    assert "rarest" not in text


def test_a_length_is_of_words_or_of_characters() -> None:
    assert (length(" a  b\tc "), length("猫が 好き", "ja")) == (3, 4)


def test_nothing_is_not_scored() -> None:
    with pytest.raises(RegardError, match="nothing to score"):
        break_down([], [], [], ("en", "de"), None, word_faults)
