"""The lexicon: what its tables refuse, and how many lemmas the language has."""

from collections import Counter
from pathlib import Path

import pytest

from regard.runs.demo.grammar import Pair, lexicon, words_of
from regard.runs.demo.grammar.corpus import PATTERNS
from regard.runs.demo.grammar.lexicon import ADJECTIVES, COMPARATIVES, NOUNS, VERBS, WORDS, Noun, verb
from regard.runs.demo.grammar.phrases import TIMES, Time
from regard.system.errors import RegardError
from tests.refusals import refused

TABLES = Path(lexicon.__file__).with_name("tables")
FUNCTION_WORDS = """the this a my our his her their many be have do can must should want will not he she they we I it
who that which than too because when and with by from to over at euro o'clock why where what cost"""

WRONG_LINES = [
    (Noun, "man\tmen", "man", ("6", "7", "german_plural")),
    (Noun, "Frau\tf", "Frau\tw", ("gender", "'w'")),
    (Noun, "Kind\tn", "-\tn", ("german", "''")),
    (lexicon.Adjective, "person,animal,thing", "person,beast,thing", ("groups", "beast")),
    (lexicon.Verb, "goods,food,mass", "goods,fod,mass", ("objects", "fod")),
    (lexicon.Comparative, "\tyoung", "\tyung", ("base", "yung")),
    (lexicon.Word, "city\tRome", "town\tRome", ("kind", "town")),
    (Time, "p\t0-0 1-1", "x\t0-0 1-1", ("tenses", "'x'")),
    (Time, "p\t0-0 1-1", "p\t0-0 1", ("alignment",)),
]


@pytest.mark.parametrize(("kind", "right", "wrong", "names"), WRONG_LINES)
def test_a_wrong_line_is_named(tmp_path, monkeypatch, kind, right: str, wrong: str, names: tuple[str, ...]) -> None:
    table = f"tables/{kind.__name__.lower()}s.tsv"
    before, _, after = (TABLES.parent / table).read_text(encoding="utf-8").partition(right)
    (tmp_path / table).parent.mkdir()
    (tmp_path / table).write_text(before + wrong + after, encoding="utf-8")
    monkeypatch.setattr(lexicon, "files", lambda package: tmp_path)
    with refused(RegardError, f"{table}:{before.count(chr(10)) + 1}", *names):
        lexicon.read_entries(kind)


def test_every_kind_and_every_table_is_used() -> None:
    assert sorted(path.name for path in TABLES.iterdir()) == [
        f"{kind}s.tsv" for kind in ("adjective", "comparative", "determiner", "example", "noun", "time", "verb", "word")
    ]
    for time in TIMES:
        assert {i for i, _ in time.alignment} == set(range(len(time.english_words)))
        assert {j for _, j in time.alignment} == set(range(len(time.german_words)))


def test_lemmas_are_counted_honestly(sample: list[Pair], others: list[Pair]) -> None:
    """Every lemma is used: it, or for verbs and nouns a form of it, occurs in the language; the guide says how many."""
    assert {pair.pattern for pair in sample} == set(PATTERNS)
    assert sum(len(words_of(pair.source)) for pair in sample) / len(sample) >= 9
    forms = {lemma: {lemma.lower()} for lemma in FUNCTION_WORDS.split()}
    forms |= {entry.english: {entry.english.lower()} for entry in (*NOUNS, *ADJECTIVES, *VERBS, *WORDS)}
    forms |= {entry.base: {entry.base} for entry in COMPARATIVES}
    forms |= {word: {word.lower()} for time in TIMES for word in time.english_words if word != "days"}
    assert len(forms) == 528
    for entry in VERBS:
        forms[entry.english] |= {entry.english_third, entry.english_past, entry.english_participle}
    irregular = {"be": {"is"}, "euro": {"euros"}, "not": {"didn't"}, "fast": {"faster"}, "day": {"days"}}
    seen = {word.lower() for pair in others for word in words_of(pair.source)}
    assert [lemma for lemma, own in forms.items() if not (own | irregular.get(lemma, set())) & seen] == []


def test_an_english_form_belongs_to_one_lemma() -> None:
    """So that one word of a class never has two translations to choose from."""
    nouns = Counter(form for entry in NOUNS for form in {entry.english, entry.english_plural} - {""})
    adjectives = Counter(entry.english for entry in ADJECTIVES)
    assert max(nouns.values()) == max(adjectives.values()) == 1
    german: dict[str, tuple[str, str]] = {}
    for entry in VERBS:
        past = german.setdefault(entry.english_past, (entry.english, entry.infinitive))
        assert past == (entry.english, entry.infinitive)
        assert entry.english_past != entry.english, "its tense could not be read off the English"


def test_forms_made_from_others() -> None:
    """The English form in *-ing* and the German first person, by the tables of a school grammar."""
    progressive = """lie lying run running sit sitting begin beginning forget forgetting hug hugging fit fitting
    see seeing dance dancing bake baking travel travelling open opening visit visiting tidy tidying
    draw drawing steal stealing sew sewing deliver delivering sell selling sleep sleeping feed feeding"""
    first = """sleep schlafe see sehe eat esse collect sammle stroke streichle feed füttere deliver liefere know weiß
    wait warte carry trage bake backe go fahre climb klettere open öffne draw zeichne"""
    for table, form in ((progressive, "english_present_participle"), (first, "first")):
        words = table.split()
        assert [getattr(verb(word), form) for word in words[::2]] == words[1::2]


def test_an_adjective_is_said_once_of_a_noun() -> None:
    assert all(len(set(entry.qualities)) == len(entry.qualities) for entry in NOUNS)


def test_the_300_simple_sentences_are_of_the_language(sample: list[Pair], others: list[Pair]) -> None:
    """Every word is one of the grammar; where it makes the same English, it makes the same German."""
    table = {example.english: example.german for example in lexicon.read_entries(lexicon.Example)}
    assert len(table) == 300
    assert max(len(words_of(english)) for english in table) <= 9
    made = {pair.source: pair.target for pair in (*sample, *others)}
    known = {word.lower() for source in made for word in words_of(source)}
    assert [word for english in table for word in words_of(english) if word.lower() not in known] == []
    both = table.keys() & made.keys()
    assert len(both) > 10
    assert [made[english] for english in both] == [table[english] for english in both]
