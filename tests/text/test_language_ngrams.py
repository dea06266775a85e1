"""Languages told by n-grams: naive Bayes as a plain loop has it, on words that are and are not known."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from regard.system.errors import RegardError
from regard.text.language_ngrams import LONGEST, LanguageNgrams, read_ngrams, words_of
from regard.text.tokenizers.vocabulary import NGRAMS
from tests.refusals import refused

TEXTS = {
    "en": ["The dog runs over the green field.", "A man with a red hat sings in the rain."],
    "de": ["Der Hund läuft über das grüne Feld.", "Ein Mann mit rotem Hut singt im Regen."],
}
LEARNED = LanguageNgrams.of({code: Counter(words_of(texts)) for code, texts in TEXTS.items()})


def grams(text: str) -> list[str]:
    found = []
    for word in "".join(sign if sign.isalpha() else " " for sign in text.lower()).split():
        whole = f" {word} "
        found += [whole[i:j] for i in range(len(whole)) for j in range(i + 1, min(i + LONGEST, len(whole)) + 1)]
    return [one for one in found if one != " "]


@pytest.mark.parametrize("text", ["The man", "der hund singt", "xyz Feld", "rain, Regen!", "über 12 Uhr"])
def test_it_is_naive_bayes(text: str) -> None:
    counts = {code: Counter(one for some in texts for one in grams(some)) for code, texts in TEXTS.items()}
    logs = dict.fromkeys(counts, 0.0)
    for one in grams(text):
        if any(one in known for known in counts.values()):
            for code, known in counts.items():
                logs[code] += math.log((known[one] or 0.5) / known.total()) / LONGEST
    whole = sum(map(math.exp, logs.values()))
    best = max(logs, key=lambda code: logs[code])
    language, confidence = LEARNED.guess(text)
    assert language == best
    assert confidence == pytest.approx(math.exp(logs[best]) / whole)


@pytest.mark.parametrize("text", ["", "12 + 3", "Привет"])
def test_nothing_known_tells_nothing(text: str) -> None:
    assert LEARNED.guess(text) == ("en", 0.5)


def test_the_file_holds_it_all(tmp_path: Path) -> None:
    (tmp_path / NGRAMS).write_bytes(LEARNED.content)
    assert read_ngrams(tmp_path / NGRAMS) == LEARNED


@pytest.mark.parametrize(
    "change",
    [
        {"counts": {}},
        {"counts": {"en": {"a": 1}}},
        {"counts": 3},
        {"totals": {"en": 1, "de": "x"}},
        {"totals": {"en": 1, "de": 10**20}},
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / NGRAMS).write_text(json.dumps({**json.loads(LEARNED.content), **change}))
    with refused(RegardError, NGRAMS, "n-grams"):
        read_ngrams(tmp_path / NGRAMS)
