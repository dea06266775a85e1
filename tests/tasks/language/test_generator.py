"""A language model in use: what it writes, streamed or not, and how it judges texts."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.config import GptSection, Recipe
from regard.runs.workers.processes import divider
from regard.system.errors import Stopped, UsageError
from regard.system.forks import SAFE
from regard.tasks.assets import TextAssets
from regard.tasks.language import generator
from regard.tasks.language.generator import LanguageModel, Perplexity, surprisals, windows
from regard.text.tokenizers.tokenizer import learn
from tests.models.small_models import PIECES, assert_near, gpt, stir, texts
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


@pytest.mark.one_of(9)
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


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_p", 2.0), ("temperature", -1), ("beam", 3), ("max_tokens", 0), ("max_tokens", True), ("stop", ""), ("n", 0)],
)
def test_options_that_do_not_fit_and_what_is_no_text_are_refused(name: str, value: object) -> None:
    model = made()
    with refused(UsageError, "samples" if name == "n" else name):
        model.generate("a", **{name: value})
    for ask, wrong in ((model.generate, ["a", 3]), (model.stream, 7)):
        with refused(UsageError, None, "int"):
            ask(wrong)


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_scores_are_those_of_the_forward_pass(units: str) -> None:
    model = made(max_tokens=200, units=units)
    tokenizer = model.assets.tokenizer
    text = "the dog sat"
    ids = tokenizer.ids_batch([text])[0]
    with torch.no_grad():
        scores = model.model.scores(model.model(texts([np.append(0, ids)]))).log_softmax(1)
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


END = 0


def plain(model, ids: np.ndarray, length: int, stride: int) -> list[float]:
    """Token by token: what the window that it is new in holds before it."""
    found, count = [], len(ids)
    for place in range(count):
        begin = 0 if place < length else (place - length) // stride * stride + stride
        read = [END if begin == 0 else ids[begin - 1], *ids[begin:place]]
        with torch.no_grad():
            score = model.scores(model(texts([np.array(read)])))[-1].log_softmax(0)
        found.append(-float(score[ids[place]]))
    return found


@pytest.mark.one_of(3)
@pytest.mark.parametrize("stride", [1, 3, 4])
def test_every_token_is_judged_by_what_stands_before_it(stride: int) -> None:
    model, random = gpt(), np.random.default_rng(1)
    documents = [random.integers(0, PIECES, length) for length in (11, 0, 1, 4, 5, 26)]
    found = surprisals(model, documents, 4, stride, END)
    for nats, ids in zip(found, documents, strict=True):
        assert len(nats) == len(ids)
        if len(ids):
            assert_near(nats, np.array(plain(model, ids, 4, stride)), 1e-9)


@pytest.mark.skipif(not SAFE, reason="processes are not copied here")
def test_several_processes_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "ROOM", 16)
    model, random = gpt(), np.random.default_rng(2)
    documents = [random.integers(0, PIECES, length) for length in (40, 0, 7, 26)]
    one, two = (
        surprisals(model, documents, 4, 2, END, divide=divider(lambda count=count: count, block=1)) for count in (1, 2)
    )
    for some, others in zip(one, two, strict=True):
        assert np.array_equal(some, others)


@given(st.lists(st.integers(0, 60), max_size=4), st.integers(1, 9), st.data())
def test_windows_hold_every_token_fresh_once(lengths, length, data) -> None:
    stride = data.draw(st.integers(1, length))
    fresh: list[tuple[int, int]] = []
    for one in windows(lengths, length, stride):
        assert 0 <= one.begin <= one.fresh <= one.end <= lengths[one.document]
        assert one.end - one.begin <= length
        assert one.fresh == 0 or one.end - one.fresh <= stride
        assert one.fresh == 0 or one.fresh - one.begin >= length - stride
        fresh += [(one.document, place) for place in range(one.fresh, one.end)]
    assert fresh == [(number, place) for number, count in enumerate(lengths) for place in range(count)]


def test_a_stride_that_leaves_tokens_out_is_refused_and_it_can_be_stopped() -> None:
    def stop() -> None:
        raise Stopped("now")

    for stride in (0, 5, -1):
        with refused(UsageError, "stride", str(stride), "4"):
            surprisals(gpt(), [np.arange(9)], 4, stride, END)
    with pytest.raises(Stopped):
        surprisals(gpt(), [np.arange(9)], 4, 4, END, stop)
    assert surprisals(gpt(), [], 4, 4, END, stop) == []


def test_measures() -> None:
    both = Perplexity(16.0, 8, 4, 16)
    assert both.per_token == pytest.approx(math.exp(2))
    assert both.per_word == pytest.approx(math.exp(4))
    assert both.bits_per_byte == pytest.approx(1 / math.log(2))
    assert Perplexity(1e6, 1, 1, 1).per_token == math.inf
    assert Perplexity(0.0, 0, 0, 0).bits_per_byte == 0.0
