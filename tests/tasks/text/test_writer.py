"""Translators and text-to-text models keep to terms, begin as told, and choose among several, by the same rules."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
import sacrebleu

from regard.engine import transformer
from regard.system.errors import UsageError, collect_notices
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.text.terms import Terminology
from regard.tasks.text.writer import NOTHING
from regard.text.terms import TermList, count
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, TARGET, asker, speaker, translator

TEXTS = [SOURCE, "", "too tired: the street"]
TERMS = TermList(("street\tQuax|Qu ab", "tired\t="))
MAKERS = [translator, asker]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("make", MAKERS)
def test_outputs_contain_terms_and_nothing_forbidden_alone_as_among_others(make: Any, beam: int) -> None:
    task = make()
    plain = task.nbest(TEXTS, 1, beam)[0][0].text
    word = plain.split()[-1].strip(".") if plain.split() else "x"
    own = Terminology(TERMS, protect=True, forbidden=(word,))
    found = task.nbest([*TEXTS, "12 %d"], 1, beam, terms=own)
    assert found[1] == [NOTHING]
    for place, forms in ((0, ["Quax", "Qu ab"]), (0, ["tired"]), (2, ["Quax", "Qu ab"]), (3, ["12"]), (3, ["%d"])):
        assert count(forms, found[place][0].text), (forms, found[place])
    assert all(not count([word], line[0].text) for line in found)
    alone = [task.nbest([text], 1, beam, terms=own)[0][0].tokens for text in TEXTS]
    assert alone == [line[0].tokens for line in found[:3]]


@pytest.mark.parametrize("make", MAKERS)
def test_no_blank_stands_before_a_term_that_stands_first(make: Any) -> None:
    task = make().with_settings(["decoding.max_length=12"])
    words = (TARGET if make is translator else SOURCE).split()[:-1]
    texts = [f"Q{number}" for number in range(len(words))]
    task.terminology = Terminology(TermList(tuple(map("{}\t{}".format, texts, words))))
    found = task.write(texts, OutputOptions(2, beam=2))
    assert any(task.decode(one.parts[0].tokens).startswith(" ") for line in found for one in line)
    for one in (one for line in found for one in line):
        assert not one.text.startswith(" ")
        if make is translator:
            assert all(one.text[word.begin : word.end] == word.text for word in task.words(one))
    best = [one.text for one, *_ in found]
    assert task.best(texts, 2) == best
    assert (task.translate if make is translator else task.ask)(texts, beam=2) == best


@pytest.mark.parametrize("make", MAKERS)
def test_outputs_begin_with_what_is_given(make: Any) -> None:
    task = make()
    found = task.nbest(TEXTS, 2, 3, prefixes=["the an", "", ""])
    assert all(one.text.startswith("the an") for one in found[0])
    assert found[1:] == task.nbest(TEXTS, 2, 3)[1:]
    drawn = task.sample(TEXTS, 3, seed=4, prefixes=["the an", "", ""])
    assert all(one.text.startswith("the an") for one in drawn[0])
    assert len({one.tokens for one in drawn[0]}) > 1


@pytest.mark.parametrize("beam", [None, 5])
def test_the_answer_that_is_most_like_the_others_is_chosen(beam: int | None) -> None:
    task = asker()
    pools = task.nbest(TEXTS, 5, beam) if beam else task.sample(TEXTS, 5, seed=3)
    options = OutputOptions(2, beam, mbr=5, seed=None if beam else 3)
    for pool, line in zip(pools, task.write(TEXTS, options), strict=True):
        said = [one.text for one in pool]
        means = {}
        for place, text in enumerate(said):
            others = [other for number, other in enumerate(said) if number != place]
            means[text] = sum(sacrebleu.sentence_chrf(text, [one]).score for one in others) / max(1, len(others))
        assert [one.utility for one in line] == pytest.approx(sorted(means.values(), reverse=True)[:2], abs=1e-9)
        assert all(means[one.text] == pytest.approx(one.utility) for one in line)


def test_terms_are_sought_behind_the_prefix_of_a_task() -> None:
    task = asker()
    task.assets = replace(task.assets, prefixes=("street", "tired"), terms=TERMS)
    found = task.nbest(["street: the animal", "street: the street", "it: the street"])
    assert [count(["Quax", "Qu ab"], one.text) > 0 for [one] in found] == [False, True, True]
    assert task.ask("the animal", prefix="street") == found[0][0].text


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"n": 0}, "n", "1 to 100"),
    ({"n": 1.5}, "n", "1.5"),
    ({"n": True}, "n", "True"),
    ({"beam": 101}, "beam", "101"),
    ({"mbr": 1}, "mbr", "2 to 100"),
    ({"n": 3, "mbr": 2}, "mbr", "3"),
    ({"n": 3, "beam": 2}, "beam", "3"),
    ({"mbr": 9, "beam": 8}, "beam", "9"),
    ({"sample": True, "beam": 2}, "beam", "sample"),
    ({"sample": True, "guard": "retry"}, "guard", "sample"),
    ({"mbr": 3, "guard": "retry"}, "guard", "mbr"),
    ({"seed": 1}, "seed", "sample"),
    ({"mbr": 3, "beam": 3, "seed": 1}, "seed", "beam"),
    ({"drawing": {"top_k": 3}}, "top_k", "sample"),
    ({"drawing": {"repetition_penalty": 2.0}}, "repetition_penalty", "decoding.repetition_penalty"),
    ({"drawing": {"heat": 1.0}, "sample": True}, "heat", "temperature"),
    ({"drawing": {"top_p": 0.0}, "sample": True}, "top_p", "0"),
]


@pytest.mark.parametrize(("given", "where", "said"), WRONG, ids=[str(given) for given, *_ in WRONG])
def test_what_does_not_go_together_is_refused(given: dict[str, Any], where: str, said: str) -> None:
    with refused(UsageError, where, said):
        OutputOptions(**given)


def test_only_translators_have_a_guard_and_a_shortlist() -> None:
    with refused(UsageError, "guard", "text-to-text"):
        asker().write(TEXTS, OutputOptions(guard="warn"))
    for task in (asker(), speaker()):
        with refused(UsageError, "settings", "shortlist"):
            task.with_settings(["decoding.shortlist=true"])


@pytest.mark.parametrize(("name", "value"), [("terms", "terms.tsv"), ("guard", "foo")])
def test_arguments_of_another_type_are_refused(name: str, value: Any) -> None:
    with refused(UsageError, name, value):
        OutputOptions(**{name: value})


def test_a_folder_whose_list_has_no_terms_has_no_terminology() -> None:
    task = translator()
    task.assets = replace(task.assets, terms=TermList(("# a comment",)))
    assert task.terminology is None


@pytest.mark.one_of(2, minutes=0.05)
@pytest.mark.parametrize("make", MAKERS)
def test_drafts_change_no_output(make: Any) -> None:
    """One for each text, for the first part of one that is cut, nothing for a blank one; verified by the engine."""
    task = make()
    texts = [*TEXTS, " ".join([SOURCE] * 4)]
    for beam in (1, 3):
        with collect_notices() as told:
            wanted = task.write(texts, OutputOptions(beam=beam))
            for drafts in ([line[0].text for line in wanted], ["the an", "the", "", SOURCE], ["", "", "", ""]):
                with patch.object(transformer, "LARGE", 0):
                    assert task.write(texts, OutputOptions(beam=beam), drafts=drafts) == wanted
        assert ("parts" in told[0]) == (len(wanted[-1][0].parts) > 1) == (make is translator)
    with refused(UsageError, "drafts", "4", "1"):
        task.write(texts, drafts=[""])
