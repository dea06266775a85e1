"""The German of generated sentences, parsed with tables written here from a school grammar, not from the package."""

import re
from functools import cache
from pathlib import Path

import pytest

from regard.runs.demo.grammar import Pair, word_spans, words_of
from regard.runs.demo.grammar.corpus import PATTERNS
from regard.runs.demo.grammar.lexicon import ADJECTIVES, NOUNS, VERBS, adjective, noun
from regard.runs.demo.grammar.phrases import RELATIVE, NounPhrase, Prepositional, determiners
from tests.runs.demo.grammar.conftest import SHORT

# case → masculine, feminine, neuter, plural
DER = {"n": "der die das die", "a": "den die das die", "d": "dem der dem den"}
EIN = {"n": "ein eine ein keine", "a": "einen eine ein keine", "d": "einem einer einem keinen"}
WEAK = {"n": "e e e en", "a": "en e e en", "d": "en en en en"}
MIXED = {"n": "er e es en", "a": "en e es en", "d": "en en en en"}
STRONG = {"n": "er e es e", "a": "en e es e", "d": "em er em en"}
GENDERS = "mfnp"
POSSESSIVES = ("mein", "unser", "sein", "ihr", "kein", "ein")
COUNTERS = set("zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig".split())
CONTRACTED = {"im": ("dem", "d"), "am": ("dem", "d"), "ins": ("das", "a")}


def cell(table: dict[str, str], case: str, gender: str) -> str:
    return table[case].split()[GENDERS.index(gender)]


@cache
def readings_of_determiner(word: str) -> set[tuple[str, str, str]]:
    """All (declension after it, case, gender or plural) a determiner may stand for; empty if it is none."""
    found = set()
    for case in "nad":
        for gender in GENDERS:
            der, ein = cell(DER, case, gender), cell(EIN, case, gender)
            dies = "dies" + {"der": "er", "die": "e", "das": "es", "den": "en", "dem": "em"}[der]
            if word in (der, dies):
                found.add(("weak", case, gender))
            if word in CONTRACTED and CONTRACTED[word] == (der, case):
                found.add(("weak", case, gender))
            ending = ein.removeprefix("k").removeprefix("ein")
            if word in {stem + ending for stem in POSSESSIVES}:
                found.add(("mixed", case, gender))
            if gender == "p" and (word in COUNTERS or word.isdigit()):
                found.add(("strong", case, gender))
    if word == "viele":
        found |= {("strong", "n", "p"), ("strong", "a", "p")}
    if word == "vielen":
        found.add(("strong", "d", "p"))
    return found


@cache
def readings_of_noun(word: str) -> set[tuple[str, str]]:
    """All (case, gender or plural) of a noun form."""
    found = set()
    for entry in NOUNS:
        if word == entry.german:
            found |= {(case, entry.gender) for case in "nad"}
        if word == entry.german_plural:
            found |= {("n", "p"), ("a", "p")}
        if entry.countable and word == entry.german_plural + ("" if entry.german_plural[-1] in "ns" else "n"):
            found.add(("d", "p"))
    return found


STEMS = {entry.stem for entry in ADJECTIVES}


def agrees(phrase: list[str]) -> bool:
    """Whether there is a case in which determiner, adjective (if any) and noun agree."""
    *before, noun_form = phrase
    determiners, nouns = readings_of_determiner(before[0].lower()), readings_of_noun(noun_form)
    for declension, case, gender in determiners:
        endings = {"weak": WEAK, "mixed": MIXED, "strong": STRONG}[declension]
        ending = cell(endings, case, gender)
        right = len(before) == 1 or (before[1].endswith(ending) and before[1].removesuffix(ending) in STEMS)
        if (case, gender) in nouns and right:
            return True
    return False


NOUN_FORMS = {form for entry in NOUNS for form in (entry.german, entry.german_plural, entry.dative_plural)} - {""}


def phrases(pair: Pair) -> list[list[str]]:
    """Determiner, adjective if any, and noun, for every noun of a pair whose determiner stands before it."""
    target, spans = words_of(pair.target), word_spans(pair.target)
    found = []
    for place, word in enumerate(target):
        if word not in NOUN_FORMS or place == 0 or (word == "Uhr" and target[place - 1].isdigit()):
            continue
        for start in (place - 1, place - 2):
            between = target[start + 1 : place]
            adjectives = all(any(text.startswith(stem) for stem in STEMS) for text in between)
            relative = start >= 0 and pair.target[spans[start][0] - 2] == ","
            if start >= 0 and not relative and adjectives and readings_of_determiner(target[start].lower()):
                found.append(target[start : place + 1])
                break
    return found


def test_every_noun_phrase_agrees(sample: list[Pair]) -> None:
    right = "der alte Mann|ein altes Haus|den kleinen Kindern|im großen Garten|drei rote Äpfel|keine neue Lampe"
    wrong = "das alte Mann|ein alte Haus|den kleinen Kinder|im großer Garten|drei roten Äpfel|kein neue Lampe|die Tisch"
    for said, wanted in ((right, True), (wrong, False)):  # the parser knows wrong German when it sees it
        assert {agrees(phrase.split()) for phrase in said.split("|")} == {wanted}
    found = [(phrase, pair.target) for pair in sample for phrase in phrases(pair)]
    assert [(phrase, target) for phrase, target in found if not agrees(phrase)] == []
    assert len(found) > 1.5 * len(sample)


AUXILIARIES = set(
    """habe werde hat haben bin ist sind war waren kann können muss müssen sollte sollten will wollen wird werden konnte
    konnten kostet kosten""".split()
)
FORMS = [
    (verb.prefix, getattr(verb, form)) for verb in VERBS for form in "third stem_infinitive past past_plural".split()
]
"""Finite forms of verbs, their separable prefix apart."""


def test_subordinate_clauses_end_in_their_finite_verb(sample: list[Pair]) -> None:
    finite = AUXILIARIES | {prefix + form for prefix, form in FORMS}
    opening = r"(?:dass|weil|der|die|das|den|(?:in|auf|unter|hinter) (?:der|die|das|den|dem|denen))"
    found = []
    for pair in (pair for pair in sample if pair.pattern != "attempt"):  # which ends in an infinitive with zu
        found += re.findall(rf", {opening} ([^,.?]+)[,.]", pair.target) + re.findall(r"^Als ([^,]+),", pair.target)
    assert [clause for clause in found if clause.split()[-1] not in finite] == []
    assert len(found) > 0.4 * sum(not pair.pattern.startswith(SHORT) for pair in sample)


def test_statements_have_their_finite_verb_second(sample: list[Pair]) -> None:
    """After a fronted time the verb follows at once, before the subject."""
    finite = AUXILIARIES | {form for _, form in FORMS}
    times = r"^(?:(?:Gestern|Heute)(?: Abend| Morgen)?|Jetzt|Manchmal|Am \w+|Im \w+|Um \d+ Uhr|Jeden \w+)"
    found = [match for pair in sample if (match := re.match(times + r" (\w+)", pair.target))]
    assert [match.string for match in found if match[1] not in finite] == []
    assert len(found) > 0.1 * len(sample)


def german(determiner: str, words: str, case: str, plural: bool = False, preposition: str = "") -> str:
    """The German of a noun phrase, perhaps with an adjective or after a preposition."""
    *attribute, head = words.split()
    described = adjective(attribute[0]) if attribute else None
    phrase = NounPhrase(determiners()[determiner], described, noun(head), plural)
    target = Prepositional("", preposition, case, phrase).german() if preposition else phrase.german(case)
    return " ".join(text for text, _ in target)


def test_forms_from_a_school_grammar() -> None:
    """Irregular stems, plurals and contractions, each written out by hand."""
    cars = "|".join(german(word, "expensive car", "n") for word in ("the", "this", "a", "not a", "her"))
    assert cars == "das teure Auto|dieses teure Auto|ein teures Auto|kein teures Auto|ihr teures Auto"
    assert german("my", "hungry wolf", "a") == "meinen hungrigen Wolf"
    assert german("our", "old woman", "d") == "unserer alten Frau"
    assert german("", "hot tea", "a") == "heißen Tee"
    stems = [adjective(word).stem for word in ("tired", "high", "expensive", "dirty")]
    assert stems == ["müd", "hoh", "teur", "schmutzig"]
    assert [german("many", "child", case, True) for case in "nad"] == ["viele Kinder", "viele Kinder", "vielen Kindern"]
    assert [german("three", "red car", case, True) for case in "ad"] == ["drei rote Autos", "drei roten Autos"]
    assert [german("the", head, "d", True) for head in ("woman", "mouse")] == ["den Frauen", "den Mäusen"]
    assert [RELATIVE[slot] for slot in ("nm", "am", "dm", "df", "dp")] == ["der", "den", "dem", "der", "denen"]
    assert [german("the", "house", case, preposition="in") for case in "da"] == ["im Haus", "ins Haus"]
    assert german("the", "house", "a", preposition="auf") == "auf das Haus"


def test_every_german_gender_and_number_form_is_plausible() -> None:
    """Feminine plurals in -n (a few umlaut, -s or -e ones apart); a German noun has a capital letter."""
    exceptions = ("mütter", "töchter", "mäuse", "kühe", "gänse", "bänke", "kameras", "pizzas")
    for entry in NOUNS:
        assert entry.gender in "mfn"
        assert entry.german[0].isupper()
        if entry.gender == "f" and entry.countable:
            assert entry.german_plural.lower().endswith(("n", *exceptions)), entry.german_plural


TABLE = Path(__file__).with_name("translated_by_hand.tsv").read_text(encoding="utf-8")
CASES = [line.split("\t") for line in TABLE.splitlines()[1:]]


@pytest.mark.one_of(40)
@pytest.mark.parametrize(("pattern", "english", "german"), CASES, ids=[english for _, english, _ in CASES])
def test_translated_by_hand(found, pattern: str, english: str, german: str) -> None:
    """The grammar must generate the English and translate it so."""
    assert found(pattern, english).target == german


def test_every_pattern_was_translated_by_hand_and_the_guide_shows_it() -> None:
    assert {pattern for pattern, _, _ in CASES} == set(PATTERNS)
    assert len(CASES) >= 60
    guide = (Path(__file__).parents[4] / "docs" / "demo-corpus.md").read_text(encoding="utf-8")
    table = guide.partition("## Patterns")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if "|" in line]
    assert [row[0] for row in rows[2:]] == list(PATTERNS)
    assert all(row in CASES for row in rows[2:])
    assert f"| {len(PATTERNS)}, of them " in guide
