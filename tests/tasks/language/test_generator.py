"""A language model in use: what it writes, streamed or not, and how it judges texts."""

import math

import numpy as np
import pytest
import torch

from regard.config import GptSection, Recipe
from regard.system.errors import UsageError
from regard.tasks.assets import TextAssets
from regard.tasks.language.generator import LanguageModel
from regard.text.tokenizers.tokenizer import learn
from tests.models.small_models import stir, texts
from tests.refusals import refused

TEXTS = ["the cat sat on the mat and the dog sat on the log", "señor müller isst käse"] * 3
SIZES = {"layers": 1, "d_model": 16, "d_ff": 32, "heads": 2, "max_positions": 200}


def made(max_tokens: int = 12, **text: object) -> LanguageModel:
    tokenizer = learn(TEXTS, 300, symbols=("[MASK]",), **text)
    sections: dict = {"data": {"max_tokens": max_tokens}, "training": {"tokens": 256}}
    recipe, assets = Recipe(task="language-model", seed=4, model=GptSection(**SIZES), **sections), TextAssets(tokenizer)
    model = LanguageModel.build(recipe, assets.sizes, 3)
    stir(model, 3)
    return LanguageModel(recipe, assets, model.double().eval())


@pytest.mark.parametrize("prompt", ["", "the cat", "x" * 40])
@pytest.mark.parametrize("options", [{}, {"temperature": 0.5, "top_k": 20, "seed": 9}, {"temperature": 0.0}])
def test_what_is_streamed_is_what_is_written(prompt: str, options: dict) -> None:
    model = made()
    written = model.generate(prompt, 3, max_tokens=20, **options)
    for number, one in enumerate(written):
        assert "".join(model.stream(prompt, number, max_tokens=20, **options)) == one.text
        assert len(one.tokens) <= 20
        assert one.end == ("model" if len(one.tokens) < 20 else one.end)
        assert one.text == model.assets.tokenizer.decode(one.tokens)
    assert (len({one.text for one in written}) == 1) == (options.get("temperature") == 0.0)


def test_a_seed_decides_and_company_does_not_and_symbols_are_never_written() -> None:
    model = made()
    for one in model.generate("", 20, max_tokens=40):
        assert not set(one.tokens) & set(range(model.assets.tokenizer.symbols))
    several = model.generate(["the", "a dog"], 2, max_tokens=10)
    alone = model.generate("the", 2, max_tokens=10)
    assert [one.tokens for one in several[0]] == [one.tokens for one in alone]
    assert several == model.generate(["the", "a dog"], 2, max_tokens=10)
    assert several != model.generate(["the", "a dog"], 2, max_tokens=10, seed=5)
    assert model.generate("the", 1, max_tokens=10) == model.generate("the", 1, max_tokens=10, seed=4)  # the recipe's
    assert model.generate([], 2) == []


def test_writing_ends_at_a_text() -> None:
    model = made()
    plain = model.generate("", 1, max_tokens=60)[0]
    assert len(plain.text) > 6
    stop = plain.text[4:6]
    (cut,) = model.generate("", 1, max_tokens=60, stop=[stop, "never there at all"])
    assert cut.end == "stop"
    assert cut.text == plain.text[: plain.text.index(stop)]
    assert "".join(model.stream("", max_tokens=60, stop=stop)) == cut.text


def test_text_longer_than_the_window_is_written() -> None:
    model = made(max_tokens=6)
    written = model.generate("the cat sat on the mat and on", 1, max_tokens=50, temperature=2.0)[0]
    assert written.end != "model" or written.tokens
    assert "".join(model.stream("the cat sat on the mat and on", max_tokens=50, temperature=2.0)) == written.text


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_p", 2.0), ("temperature", -1), ("beam", 3), ("max_tokens", 0), ("max_tokens", True), ("stop", ""), ("n", 0)],
)
def test_options_that_do_not_fit_and_what_is_no_text_are_refused(name: str, value: object) -> None:
    model = made()
    with refused(UsageError, "samples" if name == "n" else name):
        model.generate("a", **{name: value})
    for ask, given in ((model.generate, ["a", 3]), (model.stream, 7)):
        with refused(UsageError, None, "int"):
            ask(given)


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_scores_are_those_of_the_forward_pass(units: str) -> None:
    model = made(max_tokens=200, units=units)
    tokenizer = model.assets.tokenizer
    text = "the dog sat"
    ids = tokenizer.ids_batch([text])[0]
    with torch.no_grad():
        scores = model.model.output.scores(model.model(texts([np.append(0, ids)]))).log_softmax(1)
    expected = scores.gather(1, torch.from_numpy(np.append(ids, 0))[:, None])[:, 0].tolist()
    found = model.score(text)
    assert found.log_probabilities == pytest.approx(expected)
    assert found.log_probability == pytest.approx(sum(expected))
    assert found.pieces == (*map(tokenizer.piece, ids), "</s>")
    assert model.score(text, ended=False).log_probabilities == pytest.approx(expected[:-1])


def test_perplexity_counts_tokens_words_and_bytes() -> None:
    model = made(max_tokens=5)
    found = model.perplexity(["the dög sat on", "a log"])
    nats = -sum(model.score(text).log_probability for text in ("the dög sat on", "a log"))
    assert found.nats == pytest.approx(nats, rel=0.2)  # the scores' windows overlap
    pieces = sum(map(len, model.assets.tokenizer.ids_batch(["the dög sat on", "a log"])))
    assert (found.tokens, found.words, found.bytes) == (pieces + 2, 6, 20)
    assert found.bits_per_byte == pytest.approx(found.nats / math.log(2) / 20)
    assert model.perplexity("the dög sat on").tokens == len(model.score("the dög sat on").pieces)
    assert model.perplexity(["the dög sat on", "a log"], stride=1).nats != found.nats
    model, text = made(max_tokens=20), "the dog"  # in full windows no stride matters
    assert model.perplexity(text).nats == pytest.approx(model.perplexity(text, stride=3).nats)
    assert model.perplexity(text).nats == pytest.approx(-model.score(text).log_probability)
