"""``regard info``: components and parameter counts of every family."""

import json
from pathlib import Path

import pytest

from regard.cli.info import describe
from regard.config import recipe_from
from regard.models.presets import PRESETS, meta_model
from regard.training.checkpoints.checkpoint import load
from tests.tasks.small_tasks import EVERY, put, translator


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
    built = meta_model(PRESETS[name].section, PRESETS[name].pieces)
    assert values["total"] == sum(part["parameters"] for part in values["parts"])
    assert values["total"] == sum(weight.numel() for weight in built.parameters())


def test_a_recurrent_model_is_described_by_its_cells_and_scores() -> None:
    model = recipe_from({"model": {"family": "rnn", "two_way": False, "score": "none"}}).model
    assert describe(model, (100, 200)) == [
        "d_model 256, gru cells, reading one way, no attention",
        "100 and 200 pieces, embeddings and output shared",
    ]


def test_the_published_figure_stands_below_and_is_not_the_papers_where_that_is_another(regard) -> None:
    text = regard("info", "base").out
    assert "the paper says 65 million" in text
    assert "encoder self-attention × 6" in text
    lines = [line.replace(",", "").split() for line in text.splitlines() if line.endswith("%")]
    assert sum(int(words[-2]) for words in lines[:-1]) == int(lines[-1][-2])
    assert "109.5 million here; the paper says 110 million" in regard("info", "bert-base").out
    assert "124.4 million here; its published weights have 124 million" in regard("info", "gpt2").out
    assert "the paper says" not in regard("info", "bert-base", "--vocabulary", "100").out


def test_images_have_no_vocabulary_and_what_is_no_model_is_refused(regard, tmp_path) -> None:
    regard("info", "vit-base", "--vocabulary", "100").refuses("no vocabulary")
    assert "recipe.toml" in regard("info", tmp_path).err
    (tmp_path / "file").write_text("")
    for name in ("file", "absent"):
        regard("info", tmp_path / name).refuses("is no model folder", 1)


def test_one_vocabulary_is_told_once() -> None:
    section = recipe_from({}).model
    assert describe(section, (3085, 0))[1].endswith("3,085 pieces, embeddings and output shared")
    assert "3,085 pieces" in describe(section, (3085, 3085))[1]
    assert "300 and 400 pieces" in describe(section, (300, 400))[1]


def test_the_folder_of_the_demonstration_stands_for_its_model(regard, tmp_path) -> None:
    put(tmp_path / "demo" / "model", translator())
    done = regard("info", tmp_path / "demo").succeeds()
    assert done.out.startswith(f"{tmp_path}/demo/model, a model folder\n")
    assert done.out == regard("info", tmp_path / "demo" / "model").out
    saved = load(tmp_path / "demo" / "model" / "model.safetensors")
    values = json.loads(regard("info", tmp_path / "demo", "--json").out)
    assert values["total"] == sum(tensor.numel() for tensor in saved.values())
    put(tmp_path / "demo" / "other", translator())
    (tmp_path / "demo" / "model").rename(tmp_path / "demo" / "first")
    done = regard("info", tmp_path / "demo")
    done.refuses(f"{tmp_path}/demo: holds 2 models; name one of them: {tmp_path}/demo/first, {tmp_path}/demo/other", 1)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", EVERY)
def test_what_a_models_folder_can_be_exported_to_is_what_happens(regard, name: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "model", EVERY[name]())
    done = regard("info", folder)
    *_, line = done.out.splitlines()
    outcome = regard("export", folder, tmp_path / "out")
    assert line.startswith("this model can be exported to: Hugging Face (") == (outcome.code == 0)
    assert line.startswith("this model cannot be exported as it is: ") == (outcome.code == 2)
    assert line not in regard("info", folder, "--json").out


def test_what_a_model_in_training_can_be_exported_to_needs_no_weights(regard, tmp_path: Path) -> None:
    folder = put(tmp_path / "model", EVERY["speaker"](), weights=False)
    assert regard("info", folder).out.endswith("\n\nthis model can be exported to: Hugging Face (GPT-2), CTranslate2\n")
