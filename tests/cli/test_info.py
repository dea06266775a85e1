"""``regard info`` of every family: what it is made of, and all its parameters."""

import json

import pytest

from regard.cli.info import described
from regard.config import recipe_from
from regard.models.presets import PRESETS, outlined


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bert-base", "learned positions, post-norm; 30,522 pieces"),
        ("bert-tiny", "learned positions, pre-norm; 8,000 pieces"),
        ("gpt2", "learned positions, pre-norm; 50,257 pieces, output shared"),
        ("t5-small", "relative positions, pre-norm; 32,128 pieces, embeddings and output shared"),
        ("vit-base", "learned positions, pre-norm; images of 224 × 224 × 3 in 196 patches, 1,000 classes"),
    ],
)
def test_a_preset_is_described_as_its_family_is(regard, name: str, words: str) -> None:
    assert words in regard("info", name).out.splitlines()
    values = json.loads(regard("info", name, "--json").out)
    built = outlined(PRESETS[name].section, PRESETS[name].pieces)
    assert values["total"] == sum(part["parameters"] for part in values["parts"])
    assert values["total"] == sum(weight.numel() for weight in built.parameters())


def test_a_recurrent_model_is_described_by_its_cells_and_scores() -> None:
    model = recipe_from({"model": {"family": "rnn", "two_way": False, "score": "none"}}).model
    assert described(model, (100, 200)) == [
        "d_model 256, gru cells, reading one way, no attention",
        "100 and 200 pieces, embeddings and output shared",
    ]


def test_the_published_figure_stands_below_and_is_not_the_papers_where_that_is_another(regard) -> None:
    assert "109.5 million here; the paper says 110 million" in regard("info", "bert-base").out
    assert "124.4 million here; its published weights have 124 million" in regard("info", "gpt2").out
    assert "the paper says" not in regard("info", "bert-base", "--vocabulary", "100").out


def test_images_have_no_vocabulary(regard) -> None:
    done = regard("info", "vit-base", "--vocabulary", "100")
    assert done.code == 2
    assert "no vocabulary" in done.err


def test_one_vocabulary_is_told_once() -> None:
    section = recipe_from({}).model
    assert described(section, (3085, 0))[1].endswith("3,085 pieces, embeddings and output shared")
    assert "3,085 pieces" in described(section, (3085, 3085))[1]
    assert "300 and 400 pieces" in described(section, (300, 400))[1]
