"""Words that belong together by cross-attention: which pieces make a word, whose attention it is, and its choice."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from regard.config import recipe_from
from regard.inspection.forward.record import record
from regard.system.errors import RegardError, UsageError
from regard.tasks.engine import use_engine
from regard.tasks.translation.align import LEAST, AlignmentHead, choose_heads, heads_of, words_of
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.vocabulary import learn_vocabularies
from tests.refusals import refused
from tests.tasks.small_tasks import recurrent

RECIPE = {
    "task": "translation",
    "data": {"max_tokens": 60},
    "model": {"encoder_layers": 1, "decoder_layers": 3, "d_model": 16, "d_ff": 16, "heads": 2},
}
WORDS = "the dog cat runs sees house green old man tree der hund katze läuft sieht haus grün alt mann baum".split()


def made() -> Translation:
    """A translator with made-up weights, of pieces shorter than its words."""
    draw = np.random.default_rng(1)
    pairs = [(" ".join(draw.choice(WORDS, 6)), " ".join(draw.choice(WORDS, 6))) for _ in range(60)]
    recipe, assets = recipe_from(RECIPE), learn_vocabularies(pairs, 280)
    return Translation(recipe, assets, Translation.build(recipe, assets.sizes, 5).eval())


@pytest.fixture(scope="module", params=["engine", "torch"])
def model(request: pytest.FixtureRequest) -> Translation:
    task = made()
    if request.param == "engine":
        use_engine(task)
    return task


def words_by_loops(pieces: Sequence[Any], text: str) -> list[list[int]]:
    """The pieces of each word by their characters; those of letters alone where there are any."""
    found, begin = [], 0
    for word in text.split():
        begin = text.index(word, begin)
        inside = range(begin, begin + len(word))
        own = [n for n, one in enumerate(pieces) if any(place in inside for place in range(one.start, one.end))]
        spoken = [n for n in own if any(map(str.isalnum, text[pieces[n].start : pieces[n].end]))]
        found.append(spoken or own)
        begin += len(word)
    return found


def among(*heads: str) -> list[str]:
    return [f"decoding.alignment_heads={json.dumps(heads)}"]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "heads",
    [("3 predicts",), ("3 reads",), ("3.2 predicts",), ("3.2 reads",), ("1.1 reads", "3 predicts", "2.2 predicts")],
)
def test_links_are_those_of_the_recorded_weights(model: Translation, heads: tuple[str, ...]) -> None:
    text, translation = '"the old dog," sees - the tree!', "der alte Hund... sieht (den Baum) ? ;"
    [links] = model.with_settings(among(*heads)).align([text], [translation])
    seen = record(model, text, translation)
    score_JI = np.zeros((len(translation.split()), len(text.split())))
    for name in heads:
        weight_HQK, read = seen.layer("cross", int(name[0])), name.endswith("reads")
        weight_QK = weight_HQK[int(name[2]) - 1] if name[1] == "." else weight_HQK.mean(0)
        for j, queries in enumerate(words_by_loops(seen.written[:-1], translation)):
            for i, keys in enumerate(words_by_loops(seen.source, text)):
                score_JI[j, i] += np.mean([weight_QK[query + read][keys].max() for query in queries])
    share_JI = [[score_JI[j, i] ** 2 / sum(score_JI[:, i]) for i in range(6)] for j in range(len(score_JI))]
    wanted = {(int(np.argmax(row_I)), j) for j, row_I in enumerate(share_JI)}
    assert links == wanted
    assert {j for _, j in links} == set(range(len(translation.split())))


def test_the_usual_attention_is_the_mean_of_all_layers(model: Translation) -> None:
    assert heads_of(model.recipe, 2) == (AlignmentHead(1, 0, "predicts"), AlignmentHead(2, 0, "predicts"))
    text, translation = ["the old man sees"], ["der alt mann sieht"]
    every = [f"{layer} predicts" for layer in range(1, model.recipe.model.decoder_layers + 1)]
    assert model.with_settings(among(*every)).align(text, translation) == model.align(text, translation)


@pytest.mark.parametrize("count", [24, pytest.param(70, marks=pytest.mark.long(0.1))])
def test_a_pair_is_aligned_alone_as_among_others(model: Translation, count: int) -> None:
    draw = np.random.default_rng(3)
    sides = [[" ".join(draw.choice(WORDS, draw.integers(1, 9))) for _ in range(count)] for _ in range(2)]
    sides[0][3], sides[1][9] = "", " "
    together = model.align(*sides)
    assert together[3] == together[9] == frozenset()
    assert [model.align([one], [two])[0] for one, two in zip(*sides, strict=True)] == together


@pytest.mark.parametrize("score", ["additive", "dot"])
def test_recurrent_models_align_too(score: str) -> None:
    section = {"family": "rnn", "d_model": 16, "score": score}
    recipe, assets = recipe_from({**RECIPE, "model": section}), made().assets
    task = Translation(recipe, assets, Translation.build(recipe, assets.sizes, 5).eval())
    pairs = ["the old man sees the dog", "a tree"], ["der alt mann sieht", "baum"]
    together = task.align(*pairs)
    assert [{j for _, j in links} for links in together] == [{0, 1, 2, 3}, {0}]
    assert [task.align([one], [two])[0] for one, two in zip(*pairs, strict=True)] == together


def test_a_text_that_is_normalised_to_other_words_has_no_links(model: Translation, monkeypatch: Any) -> None:
    monkeypatch.setattr(model, "reads", lambda text: ("another text", [(5, 0, 7), (6, 7, 12)]))
    with pytest.warns(UserWarning, match="line 4 "):
        assert model.align(["dog"], ["hund"], first=4) == [frozenset()]


def diagonal(queries: int, keys: int, own: range) -> np.ndarray:
    """Weights of two heads: of the first, on the last piece; of the second, on what is read in its ``own`` steps."""
    weight_HQK = np.full((2, queries, keys), 0.1 / keys, np.float32)
    weight_HQK[0, :, -2] = 1.0
    for query in own:
        weight_HQK[1, query, query - 1] = 0.9
    return weight_HQK


def test_the_heads_are_chosen_by_the_data_alone(model: Translation, monkeypatch: Any) -> None:
    """Of six heads and two steps the ones that copy; the pieces of both sides are the same."""

    def attend(step: Any, sources: Any, outputs: Any, start: int, room: int) -> list[np.ndarray]:
        shapes = [(len(two), len(one)) for one, two in zip(sources, outputs, strict=True)]
        halves = [(range(0), range(1, two // 2), range(two // 2, two)) for two, _ in shapes]
        of = zip(shapes, halves, strict=True)
        return [np.concatenate([diagonal(*shape, layer) for layer in half]) for shape, half in of]

    monkeypatch.setattr("regard.tasks.translation.align.attend", attend)
    draw = np.random.default_rng(4)
    texts = [" ".join(draw.choice(WORDS, draw.integers(2, 8))) for _ in range(LEAST)]
    heads, agreement, usual = choose_heads(model, texts, texts)
    assert {(head.layer, head.step) for head in heads} == {(2, "reads"), (3, "reads")}
    assert (agreement > 0.95, usual < 0.6) == (True, True)
    chosen = model.with_settings(among(*map(str, heads)))
    assert chosen.align(texts, texts) == [frozenset((n, n) for n in range(len(text.split()))) for text in texts]


def test_what_does_not_fit_is_refused(model: Translation) -> None:
    with refused(UsageError, "translations", "1", "2"):
        model.align(["a", "b"], ["a"])
    with refused(RegardError, "line 7 of the translations"):
        model.align(["a"], ["hund " * 200], first=7)
    with refused(UsageError, "the model", "no attention"):
        recurrent(score="none").align(["a"], ["b"])
    for name in ("4 reads", "1.3 predicts"):
        with refused(UsageError, "decoding.alignment_heads", name, "3 layers of 2 heads"):
            model.with_settings(among("1 reads", name)).align(["a"], ["b"])
    for name in ("0 reads", "1.0 reads", "1", "1.1 sees", "1.1.1 reads"):
        with refused(UsageError, "settings", "decoding.alignment_heads"):
            model.with_settings(among(name))
    with refused(UsageError, "pairs", str(LEAST)):
        choose_heads(model, ["a"], ["b"])


def test_words_are_known_without_the_punctuation_around_them() -> None:
    assert words_of("  „Straßenkleidung“, don't - (U.S.)  ...") == ["straßenkleidung", "don't", "-", "u.s", "..."]
