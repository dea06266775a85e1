"""Words that belong together by cross-attention: which pieces make a word, whose attention it is, and its choice."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import recipe_from
from regard.inspection.forward.record import record
from regard.system.errors import RegardError, UsageError
from regard.tasks.translation.align import LEAST, AlignmentHead, Step, choose_head, words_of
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.vocabulary import learn_vocabularies
from tests.refusals import refused

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


@pytest.fixture(scope="module")
def model() -> Translation:
    return made()


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


@pytest.mark.parametrize("step", ["predicts", "reads"])
@pytest.mark.parametrize("head", [0, 2])
def test_links_are_those_of_the_recorded_weights(model: Translation, head: int, step: Step) -> None:
    text, translation = '"the old dog," sees - the tree!', "der alte Hund... sieht (den Baum) ? ;"
    set_ = [
        f"decoding.alignment_{name}={value}" for name, value in (("layer", 3), ("head", head), ("step", f'"{step}"'))
    ]
    [links] = model.with_settings(set_).align([text], [translation])
    seen = record(model, text, translation)
    weight_HQK = seen.layer("cross", 3)
    weight_QK = weight_HQK[head - 1] if head else weight_HQK.mean(0)
    wanted = set()
    for j, queries in enumerate(words_by_loops(seen.written[:-1], translation)):
        rows = [weight_QK[query + (step == "reads")] for query in queries]
        scores = [np.mean([row[keys].max() for row in rows]) for keys in words_by_loops(seen.source, text)]
        wanted.add((int(np.argmax(scores)), j))
    assert links == wanted
    assert {j for _, j in links} == set(range(len(translation.split())))


def test_the_usual_attention_is_the_mean_of_the_last_layer_but_one(model: Translation) -> None:
    assert AlignmentHead.of(model.recipe, 3) == AlignmentHead(2, 0, "predicts")
    assert AlignmentHead.of(model.recipe, 1) == AlignmentHead(1, 0, "predicts")
    text, translation = ["the old man sees"], ["der alt mann sieht"]
    assert model.with_settings(["decoding.alignment_layer=2"]).align(text, translation) == model.align(
        text, translation
    )


def test_a_pair_is_aligned_alone_as_among_others(model: Translation) -> None:
    draw = np.random.default_rng(3)
    sides = [[" ".join(draw.choice(WORDS, draw.integers(1, 9))) for _ in range(70)] for _ in range(2)]
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


def diagonal(queries: int, keys: int, own: bool) -> torch.Tensor:
    """Weights of two heads: of the first, on the last piece; of the second, if its ``own``, on what is read."""
    weight_HQK = torch.full((2, queries, keys), 0.1 / keys)
    weight_HQK[0, :, -2] = 1.0
    for query in range(1, queries if own else 0):
        weight_HQK[1, query, query - 1] = 0.9
    return weight_HQK


def test_the_head_is_chosen_by_the_data_alone(model: Translation, monkeypatch: Any) -> None:
    """Of six heads and two steps the one that copies; the pieces of both sides are the same."""

    def weights_of(network: Any, family: str, sources: Any, targets: Any) -> dict[str, Any]:
        shapes = [(len(two), len(one)) for one, two in zip(sources, targets, strict=True)]
        return {"cross": [[diagonal(*shape, layer == 1) for shape in shapes] for layer in range(3)]}

    monkeypatch.setattr("regard.models.captured_attention.weights_of", weights_of)
    draw = np.random.default_rng(4)
    texts = [" ".join(draw.choice(WORDS, draw.integers(2, 8))) for _ in range(LEAST)]
    head, agreement, usual = choose_head(model, texts, texts)
    assert head == AlignmentHead(2, 2, "reads")
    assert (agreement > 0.95, usual < 0.6) == (True, True)
    chosen = model.with_settings(head.settings)
    assert chosen.align(texts, texts) == [frozenset((n, n) for n in range(len(text.split()))) for text in texts]


def test_what_does_not_fit_is_refused(model: Translation) -> None:
    with refused(UsageError, "translations", "1", "2"):
        model.align(["a", "b"], ["a"])
    with refused(RegardError, "line 7 of the translations"):
        model.align(["a"], ["hund " * 200], first=7)
    with refused(UsageError, "decoding.alignment_layer", "4", "3"):
        model.with_settings(["decoding.alignment_layer=4"]).align(["a"], ["b"])
    with refused(UsageError, "decoding.alignment_head", "3", "2"):
        model.with_settings(["decoding.alignment_layer=1", "decoding.alignment_head=3"]).align(["a"], ["b"])
    with refused(UsageError, "pairs", str(LEAST)):
        choose_head(model, ["a"], ["b"])


def test_words_are_known_without_the_punctuation_around_them() -> None:
    assert words_of("  „Straßenkleidung“, don't - (U.S.)  ...") == ["straßenkleidung", "don't", "-", "u.s", "..."]
