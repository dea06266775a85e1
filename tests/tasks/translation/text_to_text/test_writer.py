"""A text-to-text model answers as the search says, whatever the batch; and draws by number."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.decoding.search import sample, search
from regard.system.errors import RegardError, UsageError
from regard.tasks.engine import step_of
from regard.tasks.text.writer import NOTHING
from regard.tasks.translation.text_to_text.corpus import PrefixedPair, open_prefixed
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, TARGET, asker

TEXTS = ["sort: the animal", "the street", "", "it was: too tired", "  "]


@pytest.fixture(scope="module")
def model() -> Any:
    return asker()


def ids(model: Any, text: str) -> Any:
    return np.append(model.assets.tokenizer.encode(text).ids, model.symbols.end)


def test_an_answer_is_the_best_of_a_search(model) -> None:
    decoding = model.recipe.decoding.model_copy(update={"beam": 3})
    for text, found in zip(TEXTS, model.nbest(TEXTS, 2, 3), strict=True):
        if not text.strip():
            assert found == [NOTHING]
            continue
        (best,) = search(step_of(model), [ids(model, text)], decoding, model.symbols, nbest=2)
        assert [one.tokens for one in found] == [one.tokens for one in best]
        assert [one.score for one in found] == pytest.approx([one.score for one in best])
        assert found[0].probability == pytest.approx(math.exp(best[0].log_probability))
        assert found[0].text == model.assets.tokenizer.decode(best[0].tokens).replace("\n", " ")


def test_a_prefix_is_read_before_each_text(model) -> None:
    assert model.ask(["the animal", ""], prefix="sort") == [model.ask("sort: the animal"), model.ask("sort: ")]
    assert model.ask("the animal", beam=1) == model.nbest(["the animal"], 1, 1)[0][0].text


def test_never_written_are_symbols_but_the_end(model) -> None:
    pieces = model.assets.tokenizer
    assert set(model.symbols.without) == set(range(pieces.symbols)) - {pieces.end, *pieces.sentinels}
    assert model.symbols.start == pieces.start


def test_samples_depend_on_seed_and_number_alone(model) -> None:
    found = model.sample(TEXTS, 3, seed=7, temperature=2.0)
    decoding = model.recipe.decoding.model_copy(update={"temperature": 2.0})
    (drawn,) = sample(step_of(model), [ids(model, TEXTS[3])], decoding, model.symbols, seed=7, samples=3, numbers=[4])
    assert [one.tokens for one in found[3]] == [one.tokens for one in drawn]
    assert found[2:3] == [[NOTHING]]
    (alone, _) = model.sample(TEXTS[3:], 2, seed=7, first=4, temperature=2.0)
    assert [one.tokens for one in alone] == [one.tokens for one in found[3][:2]]
    assert len({one.tokens for one in found[0]}) > 1
    other = model.sample(TEXTS, 3, seed=8, temperature=2.0)
    assert other != found
    assert model.sample(["", ""]) == [[NOTHING]] * 2


def test_of_a_long_text_the_end_is_not_read(model) -> None:
    long = f"{SOURCE} " * 9
    with pytest.warns(UserWarning, match="line 5"):
        (found,) = model.nbest([long], first=5)
    cut = ids(model, long)[: model.recipe.data.max_tokens - 1]
    (best,) = search(step_of(model), [np.append(cut, model.symbols.end)], model.recipe.decoding, model.symbols)
    assert found[0].tokens == best[0].tokens


def test_given_outputs_are_scored_as_the_search_scores_its_own(model) -> None:
    texts = [text for text in TEXTS if text.strip()]
    best = [line[0] for line in model.nbest(texts)]
    found = model.score([*texts, ""], [*(one.text for one in best), ""])
    again = [ids(model, one.text).tolist() == [*one.tokens, model.symbols.end] for one in best]
    for one, scored, same in zip(best, found, again, strict=False):
        if one.finished and same:
            assert math.exp(scored.log_probability) == pytest.approx(one.probability, rel=1e-4)
    assert len(found[-1].pieces) == 1
    long = f"{SOURCE} " * 900
    with refused(RegardError, "line 2 of the texts"):
        model.score(["a", long], ["a", "a"])
    with refused(RegardError, "line 8 of the outputs"):
        model.score(["a", "a"], ["a", long], first=7)
    with refused(UsageError, "outputs", "1", "2"):
        model.score(["a", "a"], ["a"])


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda model: model.nbest(["a"], 0), "n"),
        (lambda model: model.nbest(["a"], 101), "n"),
        (lambda model: model.nbest(["a"], 1, 0), "beam"),
        (lambda model: model.nbest("a"), "texts"),
        (lambda model: model.ask([3]), "texts[0]"),
        (lambda model: model.sample(["a"], top_p=0.0), "top_p"),
        (lambda model: model.sample(["a"], heat=1.0), "heat"),
    ],
)
def test_what_cannot_be_asked_is_refused(model, call, where: str) -> None:
    with refused(UsageError, where):
        call(model)


def test_scores_are_those_of_the_answers(model, tmp_path: Path) -> None:
    examples = [PrefixedPair("sort", "the animal", "x"), PrefixedPair("", "the street", model.ask("the street"))]
    examples[0] = examples[0]._replace(target=model.ask("sort: the animal") + "y")
    found = model.evaluate(examples)
    assert (found.exact, found.texts) == (50.0, 2)
    assert {prefix: one.exact for prefix, one in found.prefixes.items()} == {"sort": 0.0, "": 100.0}
    path = tmp_path / "a.tsv"
    path.write_text("".join("\t".join(one) + "\n" for one in [*examples, PrefixedPair("sort", "a", "")]))
    assert model.evaluate(open_prefixed(path)) == found
    with refused(RegardError, None, "nothing to score"):
        model.evaluate([PrefixedPair("", "a", " ")])
    path.write_text("")
    with refused(RegardError, "a.tsv", "nothing to score"):
        model.evaluate(open_prefixed(path))


def learned(*prefixes: str) -> Any:
    """A model whose folder says which prefixes it learned."""
    task = asker()
    task.assets = replace(task.assets, prefixes=prefixes)
    return task


def test_a_prefix_that_was_not_learned_is_found(model) -> None:
    asked = [("sort: a", ""), ("foo: a", ""), ("sort", ""), ("a", "sort"), ("a", "foo"), ("sort: a", "foo")]
    found = [learned("turn round", "sort").unlearned_prefix(*one) for one in asked]
    assert found == [None, "foo", "", None, "foo", "foo"]
    found = [learned("turn round", "sort", "").unlearned_prefix(*one) for one in asked]
    assert found == [None, None, None, None, "foo", "foo"]
    assert [model.unlearned_prefix(*one) for one in asked] == [None] * len(asked)
    folded = learned("Sort")
    assert folded.unlearned_prefix("sort: a") == "sort"
    folded.recipe = folded.recipe.model_copy(update={"text": folded.recipe.text.model_copy(update={"lowercase": True})})
    assert folded.unlearned_prefix("sort: a") is None


def test_a_warning_names_what_is_known(model) -> None:
    task = learned("reverse", "sort")
    said = task.prefix_warning("a b", "nothing")
    assert said == "the model has not learned the prefix 'nothing'; it knows: reverse, sort"
    assert task.prefix_warning("nothing: a b") == said
    assert task.prefix_warning("a b") == "a text begins with no prefix: 'a b'; the model knows: reverse, sort"
    assert task.prefix_warning("sort: a b") == model.prefix_warning("foo: a b") == ""


def test_a_test_set_without_a_learned_prefix_is_refused(model, tmp_path: Path) -> None:
    path, strange = tmp_path / "a.tsv", "foo\tthe animal\tx\n"
    path.write_text(11 * strange)
    task = learned("reverse", "sort")
    with refused(RegardError, "a.tsv", "none of the prefixes: they are foo; it knows: reverse, sort"):
        task.evaluate(open_prefixed(path), 1)
    assert model.evaluate(open_prefixed(path), 1).texts == 11  # its folder does not say
    path.write_text(11 * strange + "\tsort: the animal\tx\n")
    with pytest.warns(UserWarning, match="the prefixes of 1 of 12 texts: of the others they are foo; it knows: rev"):
        assert task.evaluate(open_prefixed(path), 1).texts == 12
    path.write_text(9 * strange + "sort\tthe animal\tx\n")
    assert task.evaluate(open_prefixed(path), 1).texts == 10


def test_what_is_read_and_written_can_be_looked_at(model) -> None:
    pieces = model.assets.tokenizer
    known, read = model.reads(SOURCE)
    assert [known[begin:end] for _, begin, end in read[:-1]] == [
        SOURCE[begin:end] for begin, end in pieces.encode(SOURCE).offsets
    ]
    assert read[-1] == (pieces.end, len(SOURCE), len(SOURCE))
    assert [id for id, _, _ in model.reads_target(TARGET)[1]] == list(pieces.encode(TARGET).ids)
