"""Other words at each word of a translation, what translations begin with, and translations that are drawn."""

from dataclasses import replace

import numpy as np
import pytest

from regard.config import recipe_from
from regard.decoding.search import search
from regard.system.errors import RegardError, UsageError
from regard.tasks.text.writer import Hypothesis
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.vocabulary import learn_vocabularies
from tests.refusals import refused

RECIPE = {
    "task": "translation",
    "data": {"max_tokens": 24},
    "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2},
    "decoding": {"max_extra": 5, "beam": 3, "no_repeat_ngram": 1},
}
WORDS = "the dog cat runs sees house green old man tree der hund katze läuft sieht haus grün alt mann baum".split()
SPACED = {f" {word}" for word in WORDS}
TEXT = "the old dog sees the tree"


@pytest.fixture(scope="module")
def model() -> Translation:
    """A translator with made-up weights, which writes whole words."""
    draw = np.random.default_rng(1)
    pairs = [(" ".join(draw.choice(WORDS, 6)), " ".join(draw.choice(WORDS, 6))) for _ in range(60)]
    recipe, assets = recipe_from(RECIPE), learn_vocabularies(pairs, 340)
    task = Translation(recipe, assets, Translation.build(recipe, assets.sizes, 5).eval())
    words = [id for id in assets.target.ordinary.tolist() if assets.target.decode([id]) in SPACED]
    never = np.setdiff1d(np.arange(assets.target.size), [*words, assets.target.end])
    task.symbols = type(task.symbols)(assets.target.start, assets.target.end, tuple(never.tolist()))
    return task


def written(line: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [one.tokens for one in line]


def test_the_rest_behind_another_word_is_that_of_a_search_that_begins_with_it(model: Translation) -> None:
    [[best]], found = model.nbest([TEXT]), model.alternatives(TEXT, 2)
    assert [one.word for one in found] == best.text.split()
    assert [best.text[one.begin : one.end] for one in found] == best.text.split()
    assert all(1 <= len(one.alternatives) <= 2 for one in found[:-1])
    [source] = model.sources(TEXT)
    step, symbols = model.step(), model.symbols
    for place, one in enumerate(found):
        for other in one.alternatives:
            assert other.word != one.word
            assert 0 < other.probability < 1
            [token] = model.target_tokenizer.ids_batch([f" {other.word}"])[0].tolist()
            prefix = (*best.tokens[:place], token)
            [[rest]] = search(step, [source], model.recipe.decoding, symbols, prefixes=[prefix])
            assert model.target_tokenizer.decode(rest.tokens) == other.text
        probabilities = [other.probability for other in one.alternatives]
        assert probabilities == sorted(probabilities, reverse=True)


def test_a_best_translation_that_is_known_is_not_searched_for_again(model: Translation, monkeypatch) -> None:
    [[best]], asked = model.nbest([TEXT]), []

    def counted(*given, **options):
        asked.append(options)
        return search(*given, **options)

    monkeypatch.setattr(model, "search", counted)
    assert model.alternatives(TEXT, 2, best=best) == model.alternatives(TEXT, 2)
    assert len(asked) == 2 + 3


def test_a_blank_behind_a_given_beginning_is_the_next_words(model: Translation) -> None:
    assert model.nbest([TEXT], prefixes=[" hund \t"]) == model.nbest([TEXT], prefixes=[" hund"])


def test_alternatives_are_of_a_text_that_is_read_at_once(model: Translation) -> None:
    assert model.alternatives(" ") == []
    with refused(RegardError, "text for alternatives", "2 parts"), pytest.warns(UserWarning, match="is cut"):
        model.alternatives(" ".join(WORDS * 2))
    for n in (0, 2.5, 101):
        with refused(UsageError, "n", str(n)):
            model.alternatives(TEXT, n)


def test_a_translation_begins_as_it_is_told_and_the_rest_is_the_searches(model: Translation) -> None:
    begins = [" hund sieht", "", " baum"]
    texts = [TEXT, "the man", " ".join(WORDS * 2)]
    with pytest.warns(UserWarning, match="is cut"):
        found = model.nbest(texts, 2, prefixes=begins)
    assert all(one.text.startswith(begin) for line, begin in zip(found, begins, strict=True) for one in line)
    assert written(found[1]) == written(model.nbest(texts[1:2], 2)[0])
    assert written(found[0]) == written(model.nbest(texts[:1], 2, prefixes=begins[:1])[0])
    with refused(UsageError, "prefixes", "2", "1"):
        model.nbest([TEXT], prefixes=begins[:2])
    with refused(UsageError, "texts[0]", "NoneType"):
        model.nbest([TEXT], prefixes=[None])
    with refused(RegardError, "line 1 of the prefixes", "25"):
        model.nbest([TEXT], prefixes=[" hund" * 25])
    longest = model.nbest(["a"], prefixes=[" hund" * 20])[0][0]
    assert longest.text.startswith(" hund" * 20)


def test_what_is_drawn_depends_on_seed_line_and_number_alone(model: Translation) -> None:
    texts = [TEXT, "the man", TEXT]
    found = model.sample(texts, 3, seed=4, temperature=2.0)
    assert len({one.text for line in found for one in line}) > 3
    assert written(found[0]) != written(found[2])
    assert written(found[2]) == written(model.sample([TEXT], 3, seed=4, temperature=2.0, first=3)[0])
    assert written(found[0]) != written(model.sample(texts, 3, seed=5, temperature=2.0)[0])
    cold = [line[0].tokens for line in model.sample(texts, temperature=0.0)]
    assert cold == [line[0].tokens for line in model.nbest(texts, beam=1)]
    with refused(UsageError, "beams", "sample"):
        model.sample(texts, beams=3)


@pytest.mark.parametrize("begin", ["", " baum"])
def test_what_was_written_has_the_score_that_search_gave_it(model: Translation, begin: str) -> None:
    """What every output has to begin with counts for nothing."""
    own = model.in_direction(model.direction)
    own.symbols = replace(model.symbols, prefix=tuple(own.target_tokenizer.ids_batch([begin])[0].tolist()))
    texts = [TEXT, *WORDS]
    best = [(text, line[0]) for text, line in zip(texts, own.nbest(texts), strict=True) if line[0].finished]
    assert len(best) > 2
    skip = own.target_tokenizer.decode(own.symbols.prefix)
    found = own.score([text for text, _ in best], [one.text.removeprefix(skip) for _, one in best])
    for (_, one), scored in zip(best, found, strict=True):
        assert len(scored.pieces) == len(one.tokens) + 1
        total = scored.log_probability / ((5 + len(one.tokens) + len(own.symbols.prefix) + 1) / 6)
        assert total == pytest.approx(one.score, rel=1e-5)
    with refused(UsageError, "outputs", "1", "4"):
        own.score(texts[:4], ["a"])
    with refused(RegardError, "line 3 of the texts"):
        own.score(["a", " ".join(WORDS * 2)], ["a", "b"], first=2)
