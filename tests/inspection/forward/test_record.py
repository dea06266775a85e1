"""Inputs of every task and what is refused; records hold the weights of the pass, measured as plain loops do."""

import itertools
import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.inspection.forward.record import (
    WHOLE,
    AttentionRecord,
    Token,
    by_word,
    downsample,
    image_inputs,
    measures,
    piece,
    record,
    record_attention,
    rollout,
    text_inputs,
    visible,
    words,
)
from regard.inspection.pictures import svg
from regard.inspection.pictures.terminal_heatmap import ColourScheme
from regard.inspection.pictures.view import View, word_svg
from regard.models.captured_attention import image_weights
from regard.nn.layout import Sequences
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers.tokenizer import learn
from tests.refusals import refused
from tests.tasks import small_tasks as small
from tests.tasks.small_tasks import (
    EVERY,
    PIXELS,
    SOURCE,
    SPANNED,
    TARGET,
    polyglot,
    reader,
    recurrent,
    spanner,
    translator,
)

TEXT = "a cat\n\tand\u200b a dog\x07"


SHOWN = {"▁cat": "▁cat", "für 猫": "für 猫", "\n": "<0x0A>", "a\x00b": "a<0x00>b", "\u200b": "<0x200B>", "": ""}


@pytest.mark.parametrize(("given", "shown"), [*SHOWN.items(), ("\ud800", "<0xD800>")])
def test_what_is_not_seen_is_told_by_its_number(given: str, shown: str) -> None:
    assert visible(given) == shown


def test_pieces_of_any_tokenizer_can_be_seen() -> None:
    raw: Any = SimpleNamespace(piece=TEXT.__getitem__)  # it names its pieces as they are, as those of others may
    shown = [piece(raw, id) for id in range(len(TEXT))]
    assert all(one.isprintable() for one in shown)
    assert [one for one in shown if len(one) > 1] == ["<0x0A>", "<0x09>", "<0x200B>", "<0x07>"]
    ours = learn([TEXT] * 3, 300)
    shown = [piece(ours, id) for id in ours.encode(TEXT).ids]
    assert all(one.isprintable() for one in shown)
    wanted = TEXT.replace(" ", "▁")
    for hidden in "\n\t\u200b\x07":
        wanted = wanted.replace(hidden, f"<0x{ord(hidden):02X}>")
    assert "".join(shown) == wanted


@pytest.mark.parametrize("make", [translator, polyglot])
def test_a_translation_by_its_pieces_is_that_translation(make: Any) -> None:
    task = make()
    begin, ids = task.symbols.prefix, task.vocabularies.target.encode(TARGET).ids
    by_text = text_inputs(task, SOURCE, TARGET)
    for given in ((*begin, *ids), (*begin, *ids, task.vocabularies.target.end)):
        by_pieces = text_inputs(task, SOURCE, given)
        assert by_pieces.target_text == TARGET
        for side in ("source", "target", "written"):
            assert getattr(by_pieces, side) == getattr(by_text, side)
        assert torch.equal(by_pieces.run(), by_text.run())
    assert by_text.written_ids == (*begin, *ids, 0)
    assert by_text.read_ids == (*task.before, *task.vocabularies.source.encode(SOURCE).ids, 0)


def test_pieces_need_not_be_those_of_their_text() -> None:
    task = translator()
    side = task.vocabularies.target
    bytewise = [id for character in "weil" for id in side.encode(character).ids]
    assert bytewise != side.encode("weil").ids
    seen = text_inputs(task, SOURCE, bytewise)
    assert [token.text for token in seen.target] == ["<s>", *"weil"]
    assert [(token.start, token.end) for token in seen.written] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4)]
    assert seen.target_text == "weil"
    weights = record_attention(seen).weights
    assert weights["cross"][0].shape == (3, 5, len(seen.source))
    seen = text_inputs(task, SOURCE, ())  # nothing is written yet
    assert (len(seen.target), len(seen.written), seen.written_ids, seen.target_text) == (1, 1, (0,), "")


def test_what_the_model_writes_itself_is_what_its_task_writes() -> None:
    task = translator()
    assert text_inputs(task, SOURCE).target_text == task.translate(SOURCE, beam=1)
    of_several = polyglot()  # its outputs begin with a language
    assert text_inputs(of_several, SOURCE).written_ids[:1] == of_several.symbols.prefix
    spans = small.spanner()
    (written,) = spans.nbest([SPANNED], beam=1)[0]
    assert text_inputs(spans, SPANNED).written_ids[:-1] == written.tokens
    assert text_inputs(spans, SPANNED).target == text_inputs(spans, SPANNED, written.tokens).target


def test_a_language_model_goes_on_by_pieces() -> None:
    task = small.speaker()
    tokenizer = task.assets.tokenizer
    whole = text_inputs(task, "The animal")
    begun = text_inputs(task, "The", tokenizer.encode(" animal").ids)
    assert begun.source == whole.source == begun.written
    assert begun.source_text == whole.source_text == "The animal"
    assert begun.read_ids == begun.written_ids == (tokenizer.end, *tokenizer.encode("The animal").ids)
    assert torch.equal(begun.run(), whole.run())


@pytest.mark.parametrize(
    ("make", "text", "target", "refusal"),
    [
        (translator, SOURCE, [1], (UsageError, "branch", "1")),
        (translator, SOURCE, [5, 0, 5], (UsageError, "branch", "0")),
        (translator, SOURCE, [10**6], (UsageError, "branch")),
        (translator, SOURCE, [-1], (UsageError, "branch")),
        (translator, SOURCE, [70] * 60, (RegardError, "branch", "60")),
        (translator, SOURCE, "weil " * 50, (RegardError, "target")),
        (translator, "weil " * 50, (), (RegardError, "text")),
        (small.spanner, SPANNED, "<extra_0> " + "weil " * 50, (RegardError, "target")),
        (small.spanner, SPANNED, [2], (UsageError, "branch", "2")),
        (small.speaker, "The", [70] * 43, (RegardError, "text")),
        (small.speaker, "The", "animal", (UsageError, "target")),
        (small.classifier, SOURCE, [70], (UsageError, "target")),
        (small.classifier, "  ", None, (RegardError, "text")),
        (small.filler, SOURCE, "a", (UsageError, "target")),
        (small.tagger, SOURCE * 2000, None, (RegardError, "text", "139")),  # tokens of its prefix
        (translator, SOURCE * 2000, (), (RegardError, "text", "139")),
    ],
)
def test_what_cannot_be_seen(make: Any, text: str, target: Any, refusal: Any) -> None:
    with refused(*refusal):
        text_inputs(make(), text, target)


def test_an_image_is_its_patches() -> None:
    task = small.viewer()
    seen = image_inputs(task, np.array(PIXELS))
    assert [token.text for token in seen.source] == ["class", "1,1", "1,2", "2,1", "2,2", "3,1", "3,2"]
    assert [token.start == token.end for token in seen.source] == [True] + [False] * 6
    assert seen.source == seen.target == seen.written
    found = record_attention(seen).weights["encoder"]
    (batch,) = task.batches(task.images([np.array(PIXELS)]))
    for layer, (weights,) in zip(found, image_weights(task.model, batch), strict=True):
        np.testing.assert_array_equal(layer, weights.numpy())
    with refused(RegardError, "image", "6 x 4 x 1"):
        image_inputs(task, np.array(PIXELS[1:]))


ALL = {"encoder": 2, "decoder": 3, "cross": 3}


@pytest.fixture(scope="module")
def task() -> Any:
    """A translator that learned nothing."""
    return translator(d_model=16, heads=4, dropout=0.1)


def check_weights(made: AttentionRecord, depths: dict[str, int], heads: int = 4) -> None:
    """Every kind, layer, head and row is there."""
    assert {kind: len(layers) for kind, layers in made.weights.items()} == depths
    for kind, layers in made.weights.items():
        for weight_HQK in layers:
            assert weight_HQK.shape == (heads, len(made.queries(kind)), len(made.keys(kind)))
            np.testing.assert_allclose(weight_HQK.sum(-1), 1, atol=1e-5)


def test_weights_are_those_of_the_equation(task: Any) -> None:
    """The first encoder layer, from its embedding, in plain loops [Vaswani17 §3.2.1, eq. 1]."""
    made = record(task, SOURCE, TARGET)
    ids = [*task.vocabularies.source.encode(SOURCE).ids, 0]
    attention = task.model.encoder.layers[0].attention
    with torch.no_grad():
        sequences = Sequences.end_to_end([len(ids)])
        x = task.model.encoder.input(torch.tensor(ids), sequences.positions_T, sequences.longest)
    heard = made.head("encoder", 1, 2)
    queries, keys = (_projected(part, x) for part in (attention.query, attention.key))
    for q in range(len(ids)):
        scores = [sum(queries[q][4 + i] * key[4 + i] for i in range(4)) / math.sqrt(4) for key in keys]
        exponents = [math.exp(s - max(scores)) for s in scores]
        for k in range(len(ids)):
            assert heard[q, k] == pytest.approx(exponents[k] / sum(exponents), abs=1e-5)


def _projected(part: Any, x: Any) -> list[list[float]]:
    weight, bias, rows = part.weight.tolist(), part.bias.tolist(), x.tolist()
    return [
        [sum(w * v for w, v in zip(line, row, strict=True)) + b for line, b in zip(weight, bias, strict=True)]
        for row in rows
    ]


def test_the_model_is_left_as_it_was(task: Any) -> None:
    layers = []
    for mode in (True, False):
        task.model.train(mode)
        layers.append(record(task, SOURCE, TARGET).layer("encoder", 2))
        assert task.model.training == mode
    np.testing.assert_array_equal(*layers)  # without any dropout


def test_it_goes_to_json_and_back(task: Any) -> None:
    made = record(task, SOURCE, TARGET)
    check_weights(made, ALL)
    assert all((np.triu(weight_HQK, 1) == 0).all() for weight_HQK in made.weights["decoder"])
    values = json.loads(json.dumps(made.to_dict()))
    assert list(values["weights"]) == ["encoder", "decoder", "cross"]
    np.testing.assert_allclose(values["weights"]["encoder"][1], made.weights["encoder"][1], atol=1e-6)
    assert values["source"][0]["start"] == 0


def test_layers_and_heads_count_from_one(task: Any) -> None:
    made = record(task, SOURCE, TARGET)
    assert made.head("encoder", 2, 4) is not None
    beyond = {"layer": [("encoder", 3, 1), ("encoder", 0, 1), ("decoder", 4, 1)]}
    beyond["head"] = [("cross", 1, 5), ("cross", 1, 0)]
    for where, (kind, layer, head) in ((where, one) for where, some in beyond.items() for one in some):
        with refused(UsageError, where):
            made.head(kind, layer, head)


def test_a_space_alone_belongs_to_the_word_behind_it() -> None:
    texts = ["a", "▁", "b", ".", "▁", "</s>"]
    tokens = [Token(text, min(place, 5), min(place + 1, 5)) for place, text in enumerate(texts)]
    assert words(tokens, "a b. ") == [("a", [0]), ("b", [1, 2]), (".", [3]), ("▁", [4]), ("</s>", [5])]


def test_weights_of_words_sum_and_average() -> None:
    weight_QK = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.5, 0.0]])
    found = by_word(weight_QK, [[0, 1], [2]], [[0], [1, 2]])
    np.testing.assert_allclose(found, [[0.2, 0.8], [0.5, 0.5]])


@pytest.mark.one_of(5)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("layer", "head"), [(None, None), (1, None), (2, 3), (None, 2)])
def test_every_view_has_its_pictures(task: Any, kind: Any, whole: bool, layer: int | None, head: int | None) -> None:
    view = View(record(task, SOURCE, TARGET), kind, layer, head, whole)
    names, weight_HQK = view.heads()
    depth = 2 if kind == "encoder" else 3
    assert len(names) == (depth if layer is None else 1) * (4 if head is None else 1)
    np.testing.assert_allclose(weight_HQK.sum(-1), 1, atol=1e-4)
    assert all(name in view.terminal(ColourScheme()) for name in names if len(names) > 1)
    assert view.svg().startswith("<svg")
    values = json.loads(json.dumps(view.values()))
    assert np.array(values["heads"][0]["weights"]).shape == (len(values["queries"]), len(values["keys"]))


def test_a_word_is_found_and_its_gaze_shown(task: Any) -> None:
    view = View(record(task, SOURCE, TARGET), "encoder", 2, None, whole=True)
    glance = view.arc_diagram("It")
    assert glance.words[glance.query] == "it"
    places = [places for _, places in words(view.record.source, SOURCE)]
    expected = np.mean([by_word(w, places, places) for w in view.record.layer("encoder", 2)], axis=0)[glance.query]
    np.testing.assert_allclose(glance.weight_K, expected, atol=1e-6)
    assert "> " in view.terminal(ColourScheme(), "it")
    assert "<path" in view.svg("it")
    two = word_svg([view, view], "it")
    assert two.count('class="word from"') == 2
    assert TARGET in two
    with refused(UsageError, "token"):
        view.arc_diagram("elephant")


def test_a_word_of_the_translation_is_found_and_its_lines_run_to_the_sentence(task: Any) -> None:
    view = View(record(task, SOURCE, TARGET), "cross", 2, 1, whole=True)
    queries, keys = view.labels()
    crossing = view.arc_diagram(f"{queries[1]}/no such word")
    assert (crossing.queries, crossing.words) == (queries, keys)
    assert queries[crossing.query] == queries[1]
    np.testing.assert_allclose(crossing.weight_K, view.heads()[1][0][crossing.query], atol=1e-6)
    picture = view.svg(queries[1])
    assert picture.count('class="word"') + picture.count('class="word from"') == len(queries) + len(keys)
    assert picture.count('class="line"') == sum(weight >= 0.02 for weight in crossing.weight_K)


@pytest.mark.parametrize("name", ["classifier", "filler", "tagger", "speaker", "encoder"])
def test_every_model_of_one_text_shows_what_it_reads(name: str) -> None:
    found = record(EVERY[name](), SOURCE)
    kind = "decoder" if name == "speaker" else "encoder"
    check_weights(found, {kind: 2}, 3)
    assert found.queries(kind) == found.keys(kind) == found.source
    assert "".join(SOURCE[token.start : token.end] for token in found.source) == SOURCE
    if name == "classifier":
        assert (found.source[0].text, found.source[-1].text) == ("[CLS]", "</s>")
        with refused(UsageError, "kind"):
            found.layer("cross", 1)


def test_a_recurrent_translator_shows_its_cross_attention_alone() -> None:
    found = record(recurrent(), SOURCE)
    check_weights(found, {"cross": 1}, 1)
    assert found.queries("cross") == found.written
    assert found.keys("cross") == found.source
    with refused(RegardError, "model"):
        record(recurrent(score="none"), SOURCE)


def test_a_recurrent_decoder_shows_two_kinds() -> None:
    found = record(translator(decoder_cell="ssru"), SOURCE)
    assert found.kinds == ["encoder", "cross"]
    with refused(UsageError, "kind", "no decoder self-attention, only encoder self-attention and encoder-decoder"):
        found.layer("decoder", 1)


@pytest.mark.parametrize("target", [None, "<extra_0> street <extra_1> too tired"])
def test_a_text_with_gaps_shows_all_three_kinds(target: str | None) -> None:
    found = record(spanner(), "The animal didn't cross the <extra_0> because it was <extra_1>.", target)
    names = [token.text for token in found.source]
    assert (names.count("<extra_0>"), names.count("<extra_1>"), names[-1]) == (1, 1, "</s>")
    assert found.target[0].text == "<s>"
    assert found.target[1:] == found.written[:-1]
    assert len(found.written) > 1
    if target:
        assert found.target_text == "<extra_0> street <extra_1> too tired"
        pieces = [found.target_text[token.start : token.end] for token in found.target]
        assert "".join(pieces) == " street too tired"
    check_weights(found, ALL, 3)
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
    with refused(UsageError, "token"):
        view.terminal(ColourScheme(), "animal")


def test_an_even_look_at_a_long_text_has_lines() -> None:
    """Each word has less than a fiftieth, below which nothing is drawn elsewhere."""
    weight_K = np.full(80, 1 / 80)
    drawn = svg.arc_diagrams([svg.ArcDiagram([f"w{n}" for n in range(80)], weight_K, 0, queries=[WHOLE])])
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


@pytest.mark.parametrize(("queries", "keys", "most"), [(5, 7, 3), (4, 4, 8), (1, 9, 4), (64, 64, 16)])
def test_small_maps_are_means_of_the_full_ones(queries: int, keys: int, most: int) -> None:
    weight = drawn(1, 2, queries, keys)
    found = downsample(weight, most)
    rows, columns = min(queries, most), min(keys, most)
    assert found.shape == (2, rows, columns)
    for row, column in np.ndindex(rows, columns):
        these = weight[:, row * queries // rows : (row + 1) * queries // rows]
        cells = these[:, :, column * keys // columns : (column + 1) * keys // columns]
        np.testing.assert_allclose(found[:, row, column], cells.sum(axis=2).mean(axis=1))
    np.testing.assert_allclose(found.sum(axis=2), 1.0)
