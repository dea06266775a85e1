"""Models brought in say what they said there; what does not fit is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_folders import LABELS, TAGS, TEXTS, config_of, folder_of, rewrite
from small_peers import packed, transformers, unpadded
from test_against_transformers import pixels
from torch import Tensor

from regard.config import recipe_from, recipe_values
from regard.convert import brought, import_model
from regard.convert.incoming import OUTLINES
from regard.convert.pixels import scale_of
from regard.data.patches import Scale
from regard.errors import RegardError
from regard.models.inputs import Patches
from regard.models.store import read
from regard.nn.layout import Sequences
from regard.tasks.image_assets import ImageAssets
from regard.tasks.tag_assets import TagAssets
from regard.tasks.text_assets import TextAssets
from regard.text.vocabulary import read_tokenizer
from small_models import assert_near

BERTS = [
    ("BertForMaskedLM", "masked-lm"),
    ("BertForSequenceClassification", "classification"),
    ("BertForTokenClassification", "tagging"),
]


def opened(folder: Path) -> tuple[Any, Any, Any]:
    """Recipe, tokenizer and model of a folder of ours, read as the tasks read it."""
    recipe = recipe_from(recipe_values(folder / "recipe.toml"))
    tokenizer = read_tokenizer(folder / "tokenizer.json") if (folder / "tokenizer.json").exists() else None
    labels = folder / "labels.json"
    count = len(json.loads(labels.read_text())["labels"]) if labels.exists() else 0
    model = OUTLINES[recipe.task](recipe.model, tokenizer.size if tokenizer else 0, count)
    read(folder / "model.safetensors", model)
    return recipe, tokenizer, model.eval()


def framed(tokenizer: Any, texts: list[str]) -> list[Tensor]:
    return [torch.tensor([*tokenizer.begin, *tokenizer.encode(text).ids, tokenizer.end]) for text in texts]


@pytest.mark.parametrize(("kind", "task"), BERTS)
def test_bert_with_a_head(kind: str, task: str, tmp_path: Path) -> None:
    peer, theirs = folder_of(kind, tmp_path / "theirs", labels=TAGS if task == "tagging" else LABELS)
    import_model(tmp_path / "theirs", tmp_path / "ours")
    recipe, tokenizer, model = opened(tmp_path / "ours")
    assert recipe.task == task
    assert recipe.data.max_tokens == recipe.model.max_positions == 40
    assert recipe.tagging.scheme == ("bio" if task == "tagging" else "auto")
    if task != "masked-lm":
        assets = (TagAssets if task == "tagging" else TextAssets).load(tmp_path / "ours")
        assert assets.labels == (TAGS if task == "tagging" else LABELS)
    batch = theirs(TEXTS, padding=True, return_tensors="pt")
    texts = framed(tokenizer, TEXTS)
    assert [text.tolist() for text in texts] == [ids[mask].tolist() for ids, mask in zip(
        batch.input_ids, batch.attention_mask.bool(), strict=True
    )]  # fmt: skip
    expected = peer(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
    said = model(packed(texts))
    found = model.head.scores(said) if task == "masked-lm" else said
    assert_near(found, expected if task == "classification" else unpadded(expected, texts), 1e-4)


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "GPT2Model"])
def test_gpt2(kind: str, tmp_path: Path) -> None:
    folder_of(kind, tmp_path / "theirs")
    peer = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "theirs").eval()
    import_model(tmp_path / "theirs", tmp_path / "ours")
    recipe, tokenizer, model = opened(tmp_path / "ours")
    assert recipe.task == "language-model"
    texts = [torch.tensor(tokenizer.encode(text).ids) for text in TEXTS]
    expected = torch.cat([peer(input_ids=text[None]).logits[0] for text in texts])
    assert_near(model.output.scores(model(packed(texts))), expected, 1e-4)
    assert tokenizer.decode(texts[0].tolist()) == TEXTS[0]


@pytest.mark.parametrize(("feed_forward", "tied"), [("relu", True), ("gated-gelu", False)])
def test_t5(feed_forward: str, tied: bool, tmp_path: Path) -> None:
    made = {"feed_forward_proj": feed_forward, "tie_word_embeddings": tied}
    peer, _ = folder_of("T5ForConditionalGeneration", tmp_path / "theirs", **made)
    if not tied:
        peer.lm_head.weight = torch.nn.Parameter(torch.randn_like(peer.lm_head.weight))
        peer.save_pretrained(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    recipe, tokenizer, model = opened(tmp_path / "ours")
    assert (recipe.task, recipe.model.tie) == ("span-corruption", "three" if tied else "none")
    sources = [torch.tensor([*tokenizer.encode(text).ids, tokenizer.end]) for text in TEXTS]
    started = [torch.cat([torch.tensor([tokenizer.start]), text[:-1]]) for text in sources]
    found = model.output.scores(model.decoder(packed(started), model.encoder(packed(sources)), packed(sources)))
    expected = torch.cat([peer(input_ids=text[None], labels=text[None]).logits[0] for text in sources])
    assert_near(found, expected, 1e-4)


def test_vit(tmp_path: Path) -> None:
    peer, _ = folder_of("ViTForImageClassification", tmp_path / "theirs")
    found = import_model(tmp_path / "theirs", tmp_path / "ours")
    recipe, _, model = opened(tmp_path / "ours")
    assert (recipe.task, found.labels) == ("image-classification", LABELS)
    assert ImageAssets.load(tmp_path / "ours").scale == found.scale == Scale(255.0, (0.5,), (0.5,))
    images = torch.randn(2, 2, 8, 12)
    patches = Patches(pixels(images, 4), Sequences.end_to_end([7, 7]))
    assert_near(model(patches), peer(pixel_values=images).logits, 1e-4)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ({"image_mean": [0.1, 0.2], "image_std": [0.3, 0.4]}, Scale(255.0, (0.1, 0.2), (0.3, 0.4))),
        ({"do_normalize": False, "rescale_factor": 0.0625}, Scale(16.0, (0.0,), (1.0,))),
        ({"do_rescale": False, "image_mean": 0.5}, Scale(1.0, (0.5,), (0.5,))),
        ({"image_std": [0.0, 1.0]}, None),
        ({"rescale_factor": 0}, None),
        ({"image_mean": "dark"}, None),
    ],
)
def test_the_scale_of_pixels(values: dict[str, Any], scale: Scale | None, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(values))
    if scale is not None:
        assert scale_of(tmp_path) == scale
    else:
        with pytest.raises(RegardError, match=r"preprocessor_config\.json: is damaged"):
            scale_of(tmp_path)


def test_labels_keep_their_names_and_what_they_are_for(tmp_path: Path) -> None:
    folder_of("BertForSequenceClassification", tmp_path, problem_type="multi_label_classification")
    found = brought(tmp_path)
    assert found.labels == LABELS
    assert found.recipe.classification.kind == "multi"
    rewrite(tmp_path, problem_type="regression", id2label=None, label2id=None)
    assert brought(tmp_path).labels == tuple(f"LABEL_{number}" for number in range(5))
    assert brought(tmp_path).recipe.classification.kind == "regression"
    rewrite(tmp_path, id2label={"0": "a", "1": "b"})
    with pytest.raises(RegardError, match="2 names, the model's scores are 5"):
        brought(tmp_path)
    rewrite(tmp_path, id2label={str(n): "a" for n in range(5)})
    with pytest.raises(RegardError, match="same name twice"):
        brought(tmp_path)


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (("O", "B-A", "I-A", "B-B", "I-B"), "bio"),
        (("O", "B-A", "I-A", "E-A", "S-A"), "bilou"),
        (("O", "I-A", "I-B", "I-C", "I-D"), "io"),
        (("NOUN", "VERB", "X", "ADJ", "O"), "none"),
    ],
)
def test_the_scheme_of_tags_is_read_from_their_names(labels: tuple[str, ...], scheme: str, tmp_path: Path) -> None:
    folder_of("BertForTokenClassification", tmp_path, labels=labels)
    assert brought(tmp_path).recipe.tagging.scheme == scheme


def test_files_of_the_first_releases(tmp_path: Path) -> None:
    folder_of("BertForMaskedLM", tmp_path)
    expected = brought(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    table = "bert.embeddings.word_embeddings.weight"
    old = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor for (
        name, tensor
    ) in tensors.items()}  # fmt: skip
    old |= {
        "bert.embeddings.position_ids": torch.arange(40)[None],
        "bert.pooler.dense.weight": torch.ones(12, 12),
        "bert.pooler.dense.bias": torch.ones(12),
        "cls.seq_relationship.weight": torch.ones(2, 12),
        "cls.predictions.decoder.weight": tensors[table].clone(),
    }
    save_file(old, tmp_path / "model.safetensors")
    found = brought(tmp_path)
    assert found.weights.keys() == expected.weights.keys()
    assert all(torch.equal(found.weights[name], expected.weights[name]) for name in found.weights)
    save_file(
        {**old, "cls.predictions.decoder.weight": torch.zeros_like(tensors[table])}, tmp_path / "model.safetensors"
    )
    with pytest.raises(RegardError, match=r"cls\.predictions\.decoder\.weight.*differs"):
        brought(tmp_path)


@pytest.mark.parametrize("words", ["vocab.txt", "vocab.json"])
def test_vocabularies_of_the_first_releases_give_the_same_pieces(words: str, tmp_path: Path) -> None:
    _, theirs = folder_of("BertForMaskedLM" if words == "vocab.txt" else "GPT2LMHeadModel", tmp_path)
    core = theirs.backend_tokenizer
    (tmp_path / "tokenizer.json").unlink()
    core.model.save(str(tmp_path))
    tokenizer = brought(tmp_path).tokenizer
    texts = [*TEXTS, "Österreich  und 3 Hunde", "grass [MASK]"]
    encoded = [core.encode(text, add_special_tokens=False).ids for text in texts[:-1]]
    assert [tokenizer.encode(text).ids for text in texts[:-1]] == encoded
    assert tokenizer.mask is None or tokenizer.mask not in tokenizer.encode(texts[-1]).ids


def test_half_precision_and_several_files(tmp_path: Path) -> None:
    peer, _ = folder_of("GPT2LMHeadModel", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    peer.bfloat16().save_pretrained(tmp_path, max_shard_size="5KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    weights = brought(tmp_path).weights
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    assert torch.equal(weights["decoder.input.tokens.weight"], peer.transformer.wte.weight.float())
    index = tmp_path / "model.safetensors.index.json"
    outside = {"weight_map": {"transformer.wte.weight": "../elsewhere.safetensors"}}
    index.write_text(json.dumps(outside))
    with pytest.raises(RegardError, match="outside of the folder"):
        brought(tmp_path)


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    folder_of("GPT2LMHeadModel", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")

    def refused(changed: dict[str, Tensor]) -> str:
        save_file(changed, tmp_path / "model.safetensors")
        with pytest.raises(RegardError) as caught:
            brought(tmp_path)
        return str(caught.value)

    assert "'transformer.h.0.ln_3.weight'" in refused({**tensors, "transformer.h.0.ln_3.weight": torch.ones(12)})
    assert "lacks 'transformer.ln_f.bias'" in refused(
        {n: t for n, t in tensors.items() if n != "transformer.ln_f.bias"}
    )
    narrow = {**tensors, "transformer.wpe.weight": tensors["transformer.wpe.weight"][:7].clone()}
    assert "is [7, 12], its config.json says [40, 12]" in refused(narrow)
    whole = {**tensors, "transformer.wpe.weight": torch.ones(40, 12, dtype=torch.int64)}
    assert "torch.int64" in refused(whole)
    (tmp_path / "model.safetensors").write_bytes(b"{}")
    with pytest.raises(RegardError, match="is broken"):
        brought(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "'llama' has no counterpart here; known: bert, gpt2, t5, vit"),
        ({"model_type": None}, "does not say its model_type"),
        ({"architectures": ["GPT2ForSequenceClassification"]}, "GPT2ForSequenceClassification has no counterpart"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True has no counterpart"),
        ({"activation_function": "mish"}, "'mish' has no counterpart here; known: relu, gelu"),
        ({"n_head": 5}, "d_model 12 is not divisible by heads 5"),
        ({"n_layer": None}, "lacks 'n_layer'"),
        ({"vocab_size": 100}, "its config.json says"),
    ],
)
def test_what_a_config_says_that_we_cannot(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder_of("GPT2LMHeadModel", tmp_path)
    rewrite(tmp_path, **changes)
    with pytest.raises(RegardError) as caught:
        brought(tmp_path)
    assert message in str(caught.value)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no such folder"):
        brought(tmp_path / "absent")
    with pytest.raises(RegardError, match=r"has no config\.json"):
        brought(tmp_path)
    folder_of("BertForMaskedLM", tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").rename(tmp_path / "one" / "pytorch_model.bin")
    with pytest.raises(RegardError, match="pickled weights"):
        brought(tmp_path / "one")
    (tmp_path / "one" / "pytorch_model.bin").unlink()
    with pytest.raises(RegardError, match=r"has no model\.safetensors"):
        brought(tmp_path / "one")
    (tmp_path / "one" / "config.json").write_text("[1]")
    with pytest.raises(RegardError, match="an object was expected"):
        brought(tmp_path / "one")


def test_nothing_is_written_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    folder_of("GPT2LMHeadModel", tmp_path / "theirs")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "kept").write_text("mine")
    with pytest.raises(RegardError, match="not empty"):
        import_model(tmp_path / "theirs", tmp_path / "ours")
    assert [path.name for path in (tmp_path / "ours").iterdir()] == ["kept"]


def test_a_bare_encoder_says_that_it_has_no_head(tmp_path: Path) -> None:
    folder_of("BertModel", tmp_path)
    assert config_of(tmp_path)["architectures"] == ["BertModel"]
    with pytest.raises(RegardError, match="an encoder without a head"):
        brought(tmp_path)
