"""The demonstration's second task, against plain loops over words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import Recipe, dump_toml, override, recipe_from, saved_recipe
from regard.data.batches.batch import Capacity
from regard.data.corpora.pairs import open_pairs
from regard.data.prepare.folder import PreparedPairs
from regard.models.build import transformer
from regard.models.inputs import tokens
from regard.runs.demo.pronoun_task import CHOICES, WEIGHT, DemonstrationTraining, PronounLoss, piece_of
from regard.system.errors import RegardError, UsageError
from regard.tasks.training.base import ProductPaths
from regard.tasks.translation.training import TranslationTraining
from regard.tasks.translation.translator import Translation
from tests.data.batches.packing import pack
from tests.data.prepare.preparing import prepare_pairs

PAIRS = [
    ("I saw it and left", "ich sah sie und ging"),
    ("I saw items and left", "ich sah es und ging"),  # the piece of "it" may begin another word
    ("so it fell and it broke", "so fiel er und er brach"),  # two places, one translation
    ("now it fell", "nun fiel er und sie auch"),  # two translations: no telling
    ("now it fell", "nun fiel erst was"),  # "er" begins another word
    ("there we see it", "da sehen wir es"),
    ("there we go", "da gehen wir es"),
    ("now it went", "Sie sah, wie es ging"),  # another translation begins the sentence
    ("now it was small", "nun war sie kleiner"),  # "er" ends another word
]
RECIPE = recipe_from(
    {
        "text": {"vocabulary": 400, "joint": False},
        "data": {"validation": 20, "max_tokens": 32},
        "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 16, "heads": 2, "dropout": 0.0,
                  "tie": "two"},
        "training": {"tokens": 64, "label_smoothing": 0.1},
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedPairs:
    folder = tmp_path_factory.mktemp("ambiguous")
    for side, number in (("en", 0), ("de", 1)):
        (folder / f"a.{side}").write_text("".join(f"{pair[number]} {n}\n" for n in range(40) for pair in PAIRS))
    return prepare_pairs([open_pairs(folder / "a.en", folder / "a.de")], RECIPE, folder / "data")


def made(prepared: PreparedPairs, kind: type[TranslationTraining] = DemonstrationTraining) -> Any:
    both = prepared.vocabularies
    model = transformer(RECIPE.model, both.source.size, both.target.size, 3)
    task = Translation(RECIPE, both, model)
    return kind(task, prepared, ProductPaths())


def by_words(prepared: PreparedPairs) -> list[tuple[int, int, int]]:
    """Sentence, place of a word *it* in it, and its translation, found in the words as text."""
    found = []
    for number, (source, target) in enumerate(PAIRS):
        written = {word.lower() for word in target.replace(",", "").split() if word.lower() in CHOICES}
        encoding = prepared.vocabularies.source.encode(source)
        for place, (begin, end) in enumerate(encoding.offsets):
            whole = encoding.text[end : end + 1] in ("", " ")
            if encoding.text[begin:end].strip() == "it" and whole and len(written) == 1:
                found.append((number, place, CHOICES.index(min(written))))
    return found


def batch(prepared: PreparedPairs, capacity: Capacity | None = None) -> Any:
    both = prepared.vocabularies
    sources = [np.append(both.source.ids_batch([source])[0], both.source.end) for source, _ in PAIRS]
    targets = [np.append(both.target.ids_batch([target])[0], both.target.end) for _, target in PAIRS]
    return pack(sources, targets, both.target.start, capacity)


def test_the_examples_are_the_words_with_one_translation(prepared: PreparedPairs) -> None:
    second = PronounLoss(prepared.vocabularies)
    expected = by_words(prepared)
    assert [(number, choice) for number, _, choice in expected] == [(0, 1), (2, 0), (2, 0), (5, 2), (8, 1)]
    for capacity in (None, Capacity(200, 210, 12)):  # with room that no sentence uses
        packed = batch(prepared, capacity)
        places, gold = second.examples(packed)
        starts = packed.source.starts_B
        assert list(places) == [starts[number] + place for number, place, _ in expected]
        assert list(gold) == [choice for _, _, choice in expected]


@torch.no_grad()
def test_the_loss_is_the_cross_entropy_between_the_translations(prepared: PreparedPairs) -> None:
    teaching, packed = made(prepared), batch(prepared)
    model, target = teaching.model, prepared.vocabularies.target
    ids = [int(target.ids_batch([f"a {choice}"])[0][-1]) for choice in CHOICES]
    memory_SD = model.encoder(tokens(packed.source))
    each, right = [], 0
    for number, place, choice in by_words(prepared):
        score_C = memory_SD[packed.source.starts_B[number] + place] @ model.output.weight[ids].T
        each.append(-score_C.log_softmax(0)[choice])
        right += int(score_C.argmax()) == choice
    found = teaching.second.loss(memory_SD, model.output.weight, packed)
    assert float(found) == pytest.approx(WEIGHT * float(sum(each)), rel=1e-5)
    without = made(prepared, TranslationTraining)
    for teach in (teaching, without):
        teach.model.train()
    total, plain = teaching.loss(packed), without.loss(packed)
    assert float(total.total) == pytest.approx(float(plain.total) + float(found), rel=1e-5)
    assert float(total.nll) == float(plain.nll)
    model.eval()
    assert float(teaching.loss(packed).total) == float(without.loss(packed).nll)  # validation is of the translation
    assert teaching.second.right(memory_SD, model.output.weight, packed) == (right, len(each))
    with torch.enable_grad():  # which reaches the encoder
        teaching.second.loss(model.encoder(tokens(packed.source)), model.output.weight, packed).backward()
    assert all(part.grad is not None and part.grad.abs().sum() > 0 for part in model.encoder.layers[0].parameters())


def test_a_batch_without_the_word_costs_nothing_and_a_word_of_several_pieces_is_refused(prepared) -> None:
    second, both = PronounLoss(prepared.vocabularies), prepared.vocabularies
    ids = np.array([5, both.source.end])
    packed = pack([ids], [ids], both.target.start)
    assert float(second.loss(torch.ones(2, 8), torch.ones(both.target.size + 1, 8), packed)) == 0.0
    with pytest.raises(RegardError, match="unbekanntes"):
        piece_of(both.target, "unbekanntes")


def test_a_recipe_of_before_is_read_and_none_is_followed(tmp_path: Path) -> None:
    """Folders of translators have the section; one of the demonstration's has the words in it."""
    plain = recipe_from({"disambiguation": {"words": [], "weight": 1.0}})
    assert plain == Recipe()
    wanted = {"disambiguation": {"words": ["it = er sie es"], "weight": 3.0}}
    (tmp_path / "recipe.toml").write_text(dump_toml(wanted))
    assert saved_recipe(tmp_path / "recipe.toml") == Recipe()
    with pytest.raises(UsageError, match="regard demo"):
        recipe_from(wanted)
    with pytest.raises(UsageError, match="regard demo"):
        override({}, ["disambiguation.weight=2"])
