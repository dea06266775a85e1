"""Records hold the weights of the pass; heads are measured and rolled out as plain loops do."""

import itertools
import json
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.config import Recipe, RnnSection, TransformerSection, recipe_from
from regard.explore.forward.head_measures import measures, rollout
from regard.explore.forward.inputs import Token, by_word, words
from regard.explore.forward.record import WHOLE, record
from regard.explore.pictures import arcs
from regard.explore.pictures.terminal_heatmap import ColourScheme
from regard.explore.pictures.view import View, word_svg
from regard.models.build import rnn, transformer
from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import TagAssets, TextAssets
from regard.tasks.classification.classifier import Classification
from regard.tasks.language.spans import SpanCorruption
from regard.tasks.model_folder import TASKS
from regard.text.tokenizers.tokenizer import learn
from regard.text.tokenizers.vocabulary import Vocabularies, learn_vocabularies
from tests.refusals import refused
from tests.tasks.small_tasks import reader

SOURCE = "The animal didn't cross the street because it was too tired."
TARGET = "Das Tier überquerte die Straße nicht, weil es zu müde war."
OTHERS = [("masked-lm", "encoder"), ("tagging", "encoder"), ("language-model", "decoder"), ("encoding", "encoder")]


@dataclass
class Task:
    """A translator that was never trained."""

    model: Any
    vocabularies: Vocabularies
    recipe: Recipe
    name: str = "translation"

    def translate(self, text: str, beam: int) -> str:
        assert beam == 1
        return TARGET


@pytest.fixture(scope="module")
def task() -> Task:
    vocabularies = learn_vocabularies([(SOURCE, TARGET)] * 3, 400)
    section = TransformerSection(encoder_layers=2, decoder_layers=3, d_model=16, d_ff=32, heads=4)
    return Task(transformer(section, vocabularies.source.size, vocabularies.target.size, key=3), vocabularies, Recipe())


def test_tokens_stand_for_their_characters(task: Task) -> None:
    made = record(task, SOURCE)
    assert "".join(SOURCE[t.start : t.end] for t in made.source) == SOURCE
    assert made.source[-1].text == "</s>"
    assert made.target[0].text == "<s>"
    assert made.target[1:] == made.written[:-1]
    assert "".join(made.target_text[t.start : t.end] for t in made.written) == TARGET


def test_every_layer_head_and_row_is_there(task: Task) -> None:
    made = record(task, SOURCE, TARGET)
    for kind, depth in (("encoder", 2), ("decoder", 3), ("cross", 3)):
        assert len(made.weights[kind]) == depth
        for weight_HQK in made.weights[kind]:
            assert weight_HQK.shape == (4, len(made.queries(kind)), len(made.keys(kind)))
            np.testing.assert_allclose(weight_HQK.sum(-1), 1, atol=1e-5)
    for weight_HQK in made.weights["decoder"]:
        assert (np.triu(weight_HQK, 1) == 0).all()


def test_weights_are_those_of_the_equation(task: Task) -> None:
    """The first encoder layer, from its embedding, in plain loops [Vaswani17 §3.2.1, eq. 1]."""
    import torch

    from regard.nn.layout import Sequences

    made = record(task, SOURCE)
    ids = [*task.vocabularies.source.encode(SOURCE).ids, 0]
    attention = task.model.encoder.layers[0].attention
    with torch.no_grad():
        sequences = Sequences.end_to_end([len(ids)])
        task.model.eval()
        x = task.model.encoder.input(torch.tensor(ids), sequences.positions_T, sequences.longest)
    heard = made.head("encoder", 1, 2)
    queries, keys = _projected(attention, x, "query"), _projected(attention, x, "key")
    size = 4
    for q in range(len(ids)):
        scores = [
            sum(queries[q][4 + i] * keys[k][4 + i] for i in range(size)) / math.sqrt(size) for k in range(len(ids))
        ]
        top = max(scores)
        exponents = [math.exp(s - top) for s in scores]
        for k in range(len(ids)):
            assert heard[q, k] == pytest.approx(exponents[k] / sum(exponents), abs=1e-5)


def _projected(attention: Any, x: Any, which: str) -> list[list[float]]:
    part = next(module for name, module in attention.named_children() if name.startswith(which))
    weight, bias, rows = part.weight.tolist(), part.bias.tolist(), x.tolist()
    return [
        [sum(w * v for w, v in zip(line, row, strict=True)) + b for line, b in zip(weight, bias, strict=True)]
        for row in rows
    ]


def test_the_model_is_left_as_it_was(task: Task) -> None:
    for mode in (True, False):
        task.model.train(mode)
        record(task, SOURCE)
        assert task.model.training == mode


def test_it_goes_to_json_and_back(task: Task) -> None:
    made = record(task, SOURCE)
    values = json.loads(json.dumps(made.to_dict()))
    assert list(values["weights"]) == ["encoder", "decoder", "cross"]
    np.testing.assert_allclose(values["weights"]["encoder"][1], made.weights["encoder"][1], atol=1e-6)
    assert values["source"][0]["start"] == 0


def test_layers_and_heads_count_from_one(task: Task) -> None:
    made = record(task, SOURCE)
    assert made.head("encoder", 2, 4) is not None
    beyond = {"--layer": [("encoder", 3, 1), ("encoder", 0, 1), ("decoder", 4, 1)]}
    beyond["--head"] = [("cross", 1, 5), ("cross", 1, 0)]
    for where, (kind, layer, head) in ((where, one) for where, some in beyond.items() for one in some):
        with refused(UsageError, where):
            made.head(kind, layer, head)


def test_words_gather_their_tokens(task: Task) -> None:
    made = record(task, SOURCE)
    found = words(made.source, SOURCE)
    assert [word for word, _ in found] == [
        *"The animal didn't cross the street because it was too tired".split(),
        ".",
        "</s>",
    ]
    assert [place for _, places in found for place in places] == list(range(len(made.source)))


def test_a_space_alone_belongs_to_the_word_behind_it() -> None:
    tokens = [
        Token("a", 0, 1),
        Token("▁", 1, 2),
        Token("b", 2, 3),
        Token(".", 3, 4),
        Token("▁", 4, 5),
        Token("</s>", 5, 5),
    ]
    assert words(tokens, "a b. ") == [("a", [0]), ("b", [1, 2]), (".", [3]), ("▁", [4]), ("</s>", [5])]


def test_weights_of_words_sum_and_average() -> None:
    weight_QK = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.5, 0.0]])
    found = by_word(weight_QK, [[0, 1], [2]], [[0], [1, 2]])
    np.testing.assert_allclose(found, [[0.2, 0.8], [0.5, 0.5]])


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("layer", "head"), [(None, None), (1, None), (2, 3), (None, 2)])
def test_every_view_has_its_pictures(task: Task, kind: Any, whole: bool, layer: int | None, head: int | None) -> None:
    view = View(record(task, SOURCE), kind, layer, head, whole)
    names, weight_HQK = view.heads()
    depth = 2 if kind == "encoder" else 3
    assert len(names) == (depth if layer is None else 1) * (4 if head is None else 1)
    np.testing.assert_allclose(weight_HQK.sum(-1), 1, atol=1e-4)
    assert all(name in view.terminal(ColourScheme()) for name in names if len(names) > 1)
    assert view.svg().startswith("<svg")
    values = json.loads(json.dumps(view.values()))
    assert np.array(values["heads"][0]["weights"]).shape == (len(values["queries"]), len(values["keys"]))


def test_a_word_is_found_and_its_gaze_shown(task: Task) -> None:
    view = View(record(task, SOURCE), "encoder", 2, None, whole=True)
    glance = view.arc_diagram("It")
    assert glance.words[glance.query] == "it"
    expected = np.mean([by_word(w, *_places(view)) for w in view.record.layer("encoder", 2)], axis=0)[glance.query]
    np.testing.assert_allclose(glance.weight_K, expected, atol=1e-6)
    assert "> " in view.terminal(ColourScheme(), "it")
    assert "<path" in view.svg("it")
    two = word_svg([view, view], "it")
    assert two.count('class="word from"') == 2
    assert TARGET in two
    with refused(UsageError, "--token"):
        view.arc_diagram("elephant")


def test_a_word_of_the_translation_is_found_and_its_lines_run_to_the_sentence(task: Task) -> None:
    view = View(record(task, SOURCE), "cross", 2, 1, whole=True)
    queries, keys = view.labels()
    crossing = view.alignment_lines(f"{queries[1]}/no such word")
    assert (crossing.queries, crossing.keys) == (queries, keys)
    assert queries[crossing.query] == queries[1]
    np.testing.assert_allclose(crossing.weight_K, view.heads()[1][0][crossing.query], atol=1e-6)
    np.testing.assert_allclose(view.arc_diagram(queries[1]).weight_K, crossing.weight_K, atol=1e-6)
    picture = view.svg(queries[1])
    assert picture.count('class="word"') + picture.count('class="word from"') == len(queries) + len(keys)
    assert picture.count('class="line"') == sum(weight >= 0.02 for weight in crossing.weight_K)


def _places(view: View) -> tuple[list[list[int]], list[list[int]]]:
    found = [places for _, places in words(view.record.source, SOURCE)]
    return found, found


def test_a_stand_in_without_a_model_is_no_record() -> None:
    with pytest.raises(AttributeError):
        record(SimpleNamespace(), "text")  # type: ignore[arg-type]


def classifier(**model: Any) -> Classification:
    recipe = recipe_from(
        {"task": "classification", "model": {"layers": 2, "d_model": 16, "d_ff": 32, "heads": 4, **model}}
    )
    assets = TextAssets(learn([SOURCE], 300, symbols=("[CLS]", "[MASK]")), ("a", "b"))
    return Classification(recipe, assets, Classification.build(recipe, assets.sizes, key=5).eval())


def test_an_encoder_shows_what_it_reads() -> None:
    task = classifier()
    found = record(task, SOURCE)
    assert list(found.weights) == ["encoder"]
    assert found.source[0].text == "[CLS]"
    assert found.source[-1].text == "</s>"
    assert "".join(SOURCE[token.start : token.end] for token in found.source) == SOURCE
    for weight_HQK in found.weights["encoder"]:
        assert weight_HQK.shape == (4, len(found.source), len(found.source))
        np.testing.assert_allclose(weight_HQK.sum(-1), 1.0, rtol=1e-5)
    assert found.queries("encoder") == found.keys("encoder") == found.source
    with refused(UsageError, "--kind"):
        found.layer("cross", 1)


def test_a_recurrent_translator_shows_its_cross_attention_alone(task: Any) -> None:
    vocabularies = task.vocabularies
    sizes = vocabularies.source.size, vocabularies.target.size
    found = record(
        Task(rnn(RnnSection(d_model=16), *sizes, key=3), vocabularies, Recipe(model=RnnSection(d_model=16))), SOURCE
    )
    assert list(found.weights) == ["cross"]
    assert found.layer("cross", 1).shape == (1, len(found.written), len(found.source))
    with refused(RegardError, "model"):
        record(Task(rnn(RnnSection(d_model=16, score="none"), *sizes), vocabularies, Recipe()), SOURCE)


@pytest.mark.parametrize(("name", "kind"), OTHERS)
def test_every_model_of_one_text_shows_what_it_reads(name: str, kind: str) -> None:
    sizes = {"layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}
    recipe = recipe_from({"task": name, "model": sizes})
    tokenizer = learn([SOURCE], 300, symbols=("[CLS]", "[MASK]"))
    assets: Any = TagAssets(tokenizer, ("A", "B"), scheme="none") if name == "tagging" else TextAssets(tokenizer)
    found = TASKS[name]
    task = found(recipe, assets, found.build(recipe, assets.sizes, key=5).eval())
    seen = record(task, SOURCE)
    assert list(seen.weights) == [kind]
    assert "".join(SOURCE[token.start : token.end] for token in seen.source) == SOURCE
    for weight_HQK in seen.weights[kind]:
        np.testing.assert_allclose(weight_HQK.sum(-1), 1.0, rtol=1e-5)
        assert weight_HQK.shape[1:] == (len(seen.source), len(seen.source))


@pytest.fixture(scope="module")
def spans() -> SpanCorruption:
    """A model of missing spans that was never trained."""
    model = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 16, "d_ff": 32, "heads": 4, "positions": "relative"}
    recipe = recipe_from({"task": "span-corruption", "model": model})
    assets = TextAssets(learn([SOURCE] * 3, 300, symbols=("[CLS]", "[MASK]", "<extra_0>", "<extra_1>")))
    return SpanCorruption(recipe, assets, SpanCorruption.build(recipe, assets.sizes, key=5).eval())


@pytest.mark.parametrize("target", [None, "[MASK] street [MASK] too tired"])
def test_a_text_with_gaps_shows_all_three_kinds(spans: SpanCorruption, target: str | None) -> None:
    found = record(spans, "The animal didn't cross the [MASK] because it was [MASK].", target)
    names = [token.text for token in found.source]
    assert (names.count("<extra_0>"), names.count("<extra_1>"), names[-1]) == (1, 1, "</s>")
    assert found.target[0].text == "<s>"
    assert found.target[1:] == found.written[:-1]
    assert len(found.written) > 1
    if target:
        assert found.target_text == "<extra_0> street <extra_1> too tired"
        pieces = [found.target_text[token.start : token.end] for token in found.target]
        assert "".join(pieces) == " street too tired"
    for kind, depth in (("encoder", 2), ("decoder", 3), ("cross", 3)):
        assert len(found.weights[kind]) == depth
        for weight_HQK in found.weights[kind]:
            assert weight_HQK.shape == (4, len(found.queries(kind)), len(found.keys(kind)))
            np.testing.assert_allclose(weight_HQK.sum(-1), 1, atol=1e-5)
    by_words = View(found, "cross", 1, 1, whole=True)
    assert "<extra_1>" in by_words.labels()[1]
    assert "because" in by_words.labels()[1]


@pytest.mark.parametrize("whole", [False, True])
def test_a_text_that_is_weighed_has_one_row_which_is_always_shown(whole: bool) -> None:
    made = record(reader(), SOURCE)
    assert set(made.weights) == {"pool"}
    assert made.queries("pool") == (Token(WHOLE, 0, len(SOURCE)),)
    view = View(made, "pool", whole=whole)
    assert view.labels()[0] == [WHOLE]
    shown = view.terminal(ColourScheme())
    assert shown.startswith(f"“{WHOLE}”: Attention pooling")
    (weight_QK,) = view.heads()[1]
    for key, weight in zip(view.labels()[1], weight_QK[0], strict=True):
        assert any(key in line and f"{100 * weight:.1f}%" in line for line in shown.splitlines())
    drawn = view.svg(remark="Without anything.")
    assert drawn == view.svg(WHOLE, "Without anything.")
    assert f"Where “{WHOLE}” looks" in drawn
    assert "Without anything." in drawn
    assert drawn.count("<path") == sum(weight >= 0.02 for weight in weight_QK[0])
    with refused(UsageError, "--token"):
        view.terminal(ColourScheme(), "animal")


def test_an_even_look_at_a_long_text_has_lines() -> None:
    """Each word has less than a fiftieth, below which nothing is drawn elsewhere."""
    weight_K = np.full(80, 1 / 80)
    drawn = arcs.alignment_lines([arcs.AlignmentLines([WHOLE], 0, [f"w{n}" for n in range(80)], weight_K)])
    assert drawn.count('<path class="line"') == 80
    assert f"{WHOLE}: {WHOLE}" not in drawn


def drawn(seed: int, heads: int, queries: int, keys: int) -> np.ndarray:
    score = np.random.default_rng(seed).normal(0, 3, (heads, queries, keys))
    return np.exp(score) / np.exp(score).sum(axis=2, keepdims=True)


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (4, 7), (1, 6), (6, 1)])
def test_measures_are_means_over_the_queries(queries: int, keys: int) -> None:
    weight_HQK = drawn(1, 3, queries, keys)
    special = [key in (0, keys - 1) for key in range(keys)]
    found = measures(weight_HQK, special)
    for head, weight_QK in enumerate(weight_HQK):
        entropies, distances, shares = [], [], []
        for query, row in enumerate(weight_QK):
            place = query if queries == keys else query * (keys - 1) / max(1, queries - 1)
            entropies.append(-sum(w * math.log2(w) for w in row))
            distances.append(sum(w * abs(place - key) for key, w in enumerate(row)))
            shares.append(sum(w for w, one in zip(row, special, strict=True) if one))
        assert found.entropy_H[head] == pytest.approx(np.mean(entropies))
        assert found.distance_H[head] == pytest.approx(np.mean(distances))
        assert found.special_H[head] == pytest.approx(np.mean(shares))


def test_the_ends_of_the_measures() -> None:
    even, one, nothing = np.full((4, 4), 0.25), np.eye(4), np.zeros((4, 4))
    found = measures(np.stack([even, one, nothing]), [True, False, False, True])
    np.testing.assert_allclose(found.entropy_H, [2.0, 0.0, 0.0])
    np.testing.assert_allclose(found.distance_H, [1.25, 0.0, 0.0])
    np.testing.assert_allclose(found.special_H, [0.5, 0.5, 0.0])
    half = one.copy()
    half[2:] = 0  # two queries see nothing, and count nothing
    assert measures(half[None], [True, False, False, False]).special_H[0] == pytest.approx(0.5)


def test_the_distance_between_patches_is_along_the_straight_line() -> None:
    """Reading order would have the first patch of a row far from the one above it."""
    weight_HQK, far = drawn(2, 2, 7, 7), list[list[float]]()
    for weight_QK in weight_HQK:
        far.append([])
        for query in range(6):
            share = weight_QK[query + 1, 1:] / sum(weight_QK[query + 1, 1:])
            far[-1].append(sum(w * math.dist(divmod(query, 2), divmod(key, 2)) for key, w in enumerate(share)))
    found = measures(weight_HQK, [True] + [False] * 6, (3, 2))
    np.testing.assert_allclose(found.distance_H, np.mean(far, axis=1))


def test_rollout_sums_over_all_paths() -> None:
    layers = [drawn(seed, 2, 4, 4) for seed in range(3)]
    steps = [(layer.mean(axis=0) + np.eye(4)) / 2 for layer in layers]
    wanted = np.zeros((4, 4))
    for first, second, third, last in itertools.product(range(4), repeat=4):
        wanted[first, last] += steps[2][first, second] * steps[1][second, third] * steps[0][third, last]
    found = rollout(layers)
    np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(rollout([np.stack([np.eye(4)] * 2)] * 3), np.eye(4))
