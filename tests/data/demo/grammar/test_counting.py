"""The count of sentences: its three assumptions, and its product against plain enumeration."""

from __future__ import annotations

from itertools import product

from regard.data.demo.grammar import Pair, count_sentences
from regard.data.demo.grammar.counting import count_choices, object_strings, subject_strings
from regard.data.demo.grammar.lexicon.entries import all_nouns, all_verbs, nouns_of, verb
from regard.data.demo.grammar.phrases import times

TIMES = [" ".join(text for text, _ in time.english(0)) for time in times("p")]


def test_more_than_a_milliard() -> None:
    assert count_sentences() > 10**9


def test_no_time_begins_another_and_each_verb_has_its_own_past() -> None:
    assert not any(one != other and other.startswith(one + " ") for one in TIMES for other in TIMES)
    assert len(set(TIMES)) == len(TIMES)
    pasts = [entry.english_past for entry in all_verbs("TRANSITIVE")]
    assert len(set(pasts)) == len(pasts)


def test_no_past_form_occurs_in_a_noun_phrase() -> None:
    pasts = {entry.english_past for entry in all_verbs("TRANSITIVE")}
    for noun in all_nouns():
        texts = [*(subject_strings(noun) if noun.countable else ()), *object_strings(noun)]
        assert pasts.isdisjoint(" ".join(texts).split())


def test_the_product_equals_enumeration() -> None:
    """Every sentence of one verb with few objects, written out and put into a set."""
    peel = verb("peel")
    subjects = [text for noun in nouns_of(peel.subjects)[:1] for text in subject_strings(noun)]
    objects = [text for noun in nouns_of(peel.objects)[:2] for text in object_strings(noun)]
    sentences = {f"{time} {one} peeled {other}" for time, one, other in product(TIMES[:2], subjects, objects)}
    assert len(sentences) == 2 * len(subjects) * len(objects)
    everything = sum(len(subject_strings(noun)) for noun in nouns_of(peel.subjects))
    everything *= sum(len(object_strings(noun)) for noun in nouns_of(peel.objects))
    assert count_choices(peel) == everything


def test_subject_and_object_nouns_differ_in_the_count() -> None:
    kiss = verb("kiss")
    nouns = nouns_of(("person",))
    pairs = [
        len(subject_strings(one)) * len(object_strings(other)) for one, other in product(nouns, nouns) if one != other
    ]
    assert count_choices(kiss) == sum(pairs)


def test_what_is_counted_is_generated(sample: list[Pair]) -> None:
    """Generated sentences of the pattern have their parts in the enumerated sets."""
    checked = 0
    for pair in sample:
        time = next((time for time in TIMES if pair.source.lower().startswith(time.lower() + " ")), None)
        if pair.pattern != "fronted" or time is None:
            continue
        (name, subject, thing) = pair.verb_subject_object[0]
        past = verb(name).english_past
        rest = pair.source[len(time) + 1 : -1]
        one, middle, other = rest.partition(f" {past} ")
        nouns = {noun.english: noun for noun in nouns_of(verb(name).subjects + verb(name).objects)}
        if middle and subject in nouns:
            assert one in subject_strings(nouns[subject])
            assert other in object_strings(nouns[thing])
            checked += 1
    assert checked > 100
