"""Translations chosen among several: by minimum Bayes risk, and by a model of the reverse direction."""

from typing import Any

import pytest
import sacrebleu

from regard.system.errors import UsageError
from tests.refusals import refused
from tests.tasks import small_tasks

TEXTS = [small_tasks.SOURCE, "The street.", ""]


def reverse_model(source: str = "de", target: str = "en") -> Any:
    task = small_tasks.translator(7)
    text = task.recipe.text.model_copy(update={"source_language": source, "target_language": target})
    return type(task)(task.recipe.model_copy(update={"text": text}), task.assets, task.model)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@pytest.mark.parametrize("beam", [None, 6])
def test_of_candidates_that_which_is_most_like_the_others(utility: str, beam: int | None) -> None:
    task = small_tasks.translator().with_settings([f"decoding.utility={utility}"])
    of = sacrebleu.sentence_chrf if utility == "chrf" else sacrebleu.sentence_bleu
    pools = task.sample(TEXTS, 6, seed=3) if beam is None else task.nbest(TEXTS, 6, beam)
    found = task.mbr(TEXTS, 6, beam, seed=None if beam else 3)
    for text, pool, line in zip(TEXTS, pools, found, strict=True):
        said = [one.text for one in pool]
        for one in line:
            others = [other for place, other in enumerate(said) if place != said.index(one.text)]
            mean = sum(of(one.text, [other]).score for other in others) / max(1, len(others))
            assert one.utility == pytest.approx(mean, abs=1e-9)
        utilities = [one.utility for one in line]
        assert utilities == sorted(utilities, reverse=True)
        assert {one.text for one in line} == set(said)
        if not text:
            assert said == [""]


def test_a_reverse_model_ranks_by_both_probabilities() -> None:
    task, reverse = small_tasks.translator(), reverse_model()
    both = task.with_settings(["decoding.reverse_weight=2.5"]).with_reverse(reverse)
    found = both.nbest(TEXTS, 2, 6)
    for text, line in zip(TEXTS[:2], found[:2], strict=True):
        pool = task.nbest([text], 6, 6)[0]
        said = [one.text for one in pool]
        assert {one.tokens for one in pool} >= {one.tokens for one in line}
        own = task.score([text] * 6, said)
        back = reverse.score(said, [text] * 6)
        wanted = {s: a.log_probability + 2.5 * b.log_probability for s, a, b in zip(said, own, back, strict=True)}
        assert line[0].score >= line[1].score
        for one in line:
            if task.target_tokenizer.ids_batch([one.text])[0].tolist() == list(one.tokens) and one.finished:
                assert one.score == pytest.approx(wanted[one.text], rel=1e-4)
    drawn = both.sample(TEXTS[:1], 5, seed=2)[0]
    assert {one.tokens for one in drawn} == {one.tokens for one in task.sample(TEXTS[:1], 5, seed=2)[0]}
    assert [one.score for one in drawn] == sorted((one.score for one in drawn), reverse=True)


def test_what_is_too_long_for_the_reverse_model_stays_as_it_is() -> None:
    task, reverse = small_tasks.translator(), reverse_model()
    short = reverse.recipe.data.model_copy(update={"max_tokens": 1})
    reverse.recipe = reverse.recipe.model_copy(update={"data": short})
    assert task.with_reverse(reverse).nbest(TEXTS, 6, 6) == task.nbest(TEXTS, 6, 6)


def test_only_a_model_of_the_reverse_direction_is_taken() -> None:
    task = small_tasks.translator()
    for source, target in (("en", "de"), ("de", "fr")):
        with refused(UsageError, "reverse", f"translates {source} → {target}; the reverse of en → de"):
            task.with_reverse(reverse_model(source, target))
    task.with_reverse(reverse_model("und", "en"))
