"""Models brought in say what they said there; what does not fit is refused by name."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from regard.config import recipe_from, recipe_values
from regard.data.batches.patches import Scale
from regard.models.build import outline
from regard.models.store import load_weights
from regard.runs.conversion import import_model
from regard.runs.convert.hub import NOT_YET
from regard.runs.convert.hub_import import read_hub_model
from regard.runs.convert.side_files import scale_of
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers.vocabulary import read_tokenizer
from tests.models.small_models import assert_near
from tests.refusals import refused
from tests.runs.convert.small_folders import LABELS, PAIRS, TAGS, TEXTS, around, config_of, folder_of, rewrite
from tests.runs.convert.small_peers import framed, packed, unpadded
from tests.text.tokenizers import library_tokenizers as library

GPT2, BERT = "GPT2LMHeadModel", "BertForSequenceClassification"
T5, VIT = "T5ForConditionalGeneration", "ViTForImageClassification"


def imported(path: Path) -> tuple[Any, Any, Any]:
    """Recipe, tokenizer and model of what came in, read as the tasks read it."""
    import_model(path / "theirs", folder := path / "ours")
    recipe = recipe_from(recipe_values(folder / "recipe.toml"))
    tokenizer = read_tokenizer(folder / "tokenizer.json") if (folder / "tokenizer.json").exists() else None
    labels = folder / "labels.json"
    count = len(json.loads(labels.read_text())["labels"]) if labels.exists() else 0
    model = outline(recipe.model, tokenizer.size if tokenizer else 0, count, recipe.info.writes)
    load_weights(folder / "model.safetensors", model)
    return recipe, tokenizer, model.eval()


def unread(folder: Path, where: str | Path | None, *holds: str) -> None:
    """The folder is refused."""
    with refused(RegardError, where, *holds):
        read_hub_model(folder)


@pytest.mark.long(minutes=0.03)
@pytest.mark.parametrize("purpose", ["mrpc", "STS-B", "sst2", None])
def test_a_bert_fine_tuned_on_a_task_of_two_texts_reads_two(purpose: str | None, tmp_path: Path) -> None:
    peer, theirs = folder_of("BertForSequenceClassification", tmp_path / "theirs")
    rewrite(tmp_path / "theirs", finetuning_task=purpose)
    task = import_model(tmp_path / "theirs", tmp_path / "ours")
    if purpose not in ("mrpc", "STS-B"):
        assert task.name == "classification"
        return
    batch = theirs([list(pair) for pair in PAIRS], padding=True, return_tensors="pt", return_token_type_ids=True)
    assert batch.token_type_ids.any()
    assert_near(torch.from_numpy(task.scores(PAIRS)), peer(**batch).logits, 1e-5)


def test_two_texts_put_together_in_another_way_are_refused(tmp_path: Path) -> None:
    folder_of("BertForSequenceClassification", tmp_path)
    rewrite(tmp_path, finetuning_task="qqp")
    document = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    document["post_processor"]["pair"] *= 2
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    unread(tmp_path, tmp_path.name, "two texts")


@pytest.mark.parametrize("kind", ["T5ForConditionalGeneration", "GPT2LMHeadModel", "GPT2Model", "BertForMaskedLM"])
def test_an_output_that_is_not_tied_must_be_there(kind: str, tmp_path: Path) -> None:
    folder_of(kind, tmp_path)
    tied = read_hub_model(tmp_path)
    rewrite(tmp_path, tie_word_embeddings=False, scale_decoder_outputs=None)
    name = "cls.predictions.decoder.weight" if kind[0] == "B" else "lm_head.weight"
    unread(tmp_path, "model.safetensors", f"'{name}'")
    tensors = load_file(tmp_path / "model.safetensors")
    table = next(tensor for each, tensor in tensors.items() if re.search(r"shared|wte|word_embeddings", each))
    save_file({**tensors, name: table.clone()}, tmp_path / "model.safetensors")
    found = read_hub_model(tmp_path)
    if kind[0] == "T":  # the same numbers, but a tensor of its own
        assert (found.recipe.model.tie, found.recipe.model.scale_output) == ("none", False)
        assert torch.equal(found.weights["output.weight"], tied.weights["encoder.input.tokens.weight"])
    else:
        assert found.weights.keys() == tied.weights.keys()


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ({"image_mean": [0.1, 0.2], "image_std": [0.3, 0.4]}, Scale(255.0, (0.1, 0.2), (0.3, 0.4))),
        ({"do_normalize": False, "rescale_factor": 0.0625}, Scale(16.0, (0.0,), (1.0,))),
        ({"do_rescale": False, "image_mean": 0.5}, Scale(1.0, (0.5,), (0.5,))),
        ({"image_mean": 0.5, "image_std": [0.5]}, Scale(255.0, (0.5,), (0.5,))),
        ({"image_mean": [0.1, 0.2, 0.3]}, "mean of 3"),
        ({"image_std": [0.0, 1.0]}, ""),
        ({"rescale_factor": 1e300}, ""),
        ({"rescale_factor": 0}, "rescale_factor is 0"),
        ({"image_mean": "dark"}, 'image_mean is "dark"'),
        ({"image_std": [None]}, "image_std is [null]"),
        ({"do_rescale": "no"}, 'do_rescale is "no"'),
    ],
)
def test_the_scale_of_pixels(values: dict[str, Any], scale: Scale | str, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(values))
    if isinstance(scale, Scale):
        assert scale_of(tmp_path, 2) == scale
    else:
        with refused(RegardError, "preprocessor_config.json", scale):
            scale_of(tmp_path, 2)


def test_labels_keep_their_names_and_what_they_are_for(tmp_path: Path) -> None:
    folder_of("BertForSequenceClassification", tmp_path, problem_type="multi_label_classification")
    found = read_hub_model(tmp_path)
    assert found.labels == LABELS
    assert found.recipe.classification.kind == "multi"
    rewrite(tmp_path, problem_type=None, id2label=None, label2id=None)
    assert read_hub_model(tmp_path).labels == tuple(f"LABEL_{number}" for number in range(5))
    assert read_hub_model(tmp_path).recipe.classification.kind == "single"
    for changes, holds in (
        ({"problem_type": "regression"}, ("5",)),
        ({"problem_type": "ranking"}, ("'ranking'",)),
        ({"problem_type": None, "id2label": {"0": "a", "1": "b"}}, ("2", "5")),
        ({"id2label": {str(n): "a" for n in range(5)}}, ()),
    ):
        rewrite(tmp_path, **changes)
        unread(tmp_path, "config.json", *holds)


@pytest.mark.parametrize(
    ("task", "label"),
    [
        *(("Token", label) for label in ("B-\tPER", "B-", "I-", "", "\ud800")),
        *(("Sequence", label) for label in ("a\nb", "a|b", " a", "\u3000")),
    ],
)
def test_labels_that_no_output_can_show_are_refused(task: str, label: str, tmp_path: Path) -> None:
    folder_of(f"BertFor{task}Classification", tmp_path, problem_type="multi_label_classification")
    rewrite(tmp_path, id2label={"0": label, **{str(n): f"B-{n}" for n in range(1, 5)}})
    unread(tmp_path, tmp_path / "config.json", f"the label {json.dumps(label)} of id2label")


@pytest.mark.parametrize(("head", "labels"), [("Sequence", ("a|b", "B-")), ("Token", ("O", "B", "I", "U-x", "-"))])
def test_what_stands_between_several_labels_may_stand_in_one_alone(head: str, labels: Any, tmp_path: Path) -> None:
    folder_of(f"BertFor{head}Classification", tmp_path, labels=labels)
    assert read_hub_model(tmp_path).labels == labels


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
    assert read_hub_model(tmp_path).recipe.tagging.scheme == scheme


def test_files_of_the_first_releases(tmp_path: Path) -> None:
    folder_of("BertForMaskedLM", tmp_path)
    expected = read_hub_model(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    table = "bert.embeddings.word_embeddings.weight"
    gamma, beta = ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")
    old = {name.replace(*gamma).replace(*beta): tensor for name, tensor in tensors.items()}
    old |= {
        "bert.embeddings.position_ids": torch.arange(40)[None],
        "bert.pooler.dense.weight": torch.ones(12, 12),
        "bert.pooler.dense.bias": torch.ones(12),
        "cls.seq_relationship.weight": torch.ones(2, 12),
        "cls.predictions.decoder.weight": tensors[table].clone(),
    }
    save_file(old, tmp_path / "model.safetensors")
    found = read_hub_model(tmp_path)
    assert found.weights.keys() == expected.weights.keys()
    assert all(torch.equal(found.weights[name], expected.weights[name]) for name in found.weights)
    old["cls.predictions.decoder.weight"] = torch.zeros_like(tensors[table])
    save_file(old, tmp_path / "model.safetensors")
    unread(tmp_path, "model.safetensors")


@pytest.mark.parametrize("words", ["vocab.txt", "vocab.json"])
def test_vocabularies_of_the_first_releases_give_the_same_pieces(words: str, tmp_path: Path) -> None:
    _, theirs = folder_of("BertForMaskedLM" if words == "vocab.txt" else "GPT2LMHeadModel", tmp_path)
    core = theirs.backend_tokenizer
    (tmp_path / "tokenizer.json").unlink()
    core.model.save(str(tmp_path))
    tokenizer = read_hub_model(tmp_path).tokenizer
    texts = [*TEXTS, "Österreich  und 3 Hunde", "grass [MASK]"]
    encoded = [core.encode(text, add_special_tokens=False).ids for text in texts[:-1]]
    assert [tokenizer.encode(text).ids for text in texts[:-1]] == encoded
    assert tokenizer.mask is None or tokenizer.mask not in tokenizer.encode(texts[-1]).ids


def test_half_precision_and_several_files(tmp_path: Path) -> None:
    peer, _ = folder_of("GPT2LMHeadModel", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    peer.bfloat16().save_pretrained(tmp_path, max_shard_size="5KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    weights = read_hub_model(tmp_path).weights
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    assert torch.equal(weights["decoder.input.tokens.weight"], peer.transformer.wte.weight.float())
    index = tmp_path / "model.safetensors.index.json"
    for name in ("../elsewhere.safetensors", "", ".", "..", "a\0", 5, None, ["model.safetensors"]):
        index.write_text(json.dumps({"weight_map": {"transformer.wte.weight": name}}))
        unread(tmp_path, "model.safetensors.index.json")


@pytest.mark.parametrize("largest", [2**32 - 1, 300, -1, "1", None])
def test_a_vocabulary_whose_numbers_have_no_row_is_refused(tmp_path: Path, largest: object) -> None:
    """Of all the numbers that are free below the largest the library would make a list, and end the process."""
    _, theirs = folder_of("GPT2LMHeadModel", tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text(json.dumps({**theirs.get_vocab(), "new": largest}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    unread(tmp_path, "vocab.json", "0")


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    folder_of("GPT2LMHeadModel", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")

    def reads_no(changed: dict[str, Tensor], *holds: str) -> None:
        save_file(changed, tmp_path / "model.safetensors")
        unread(tmp_path, tmp_path / "model.safetensors", *holds)

    reads_no({**tensors, "transformer.h.0.ln_3.weight": torch.ones(12)}, "'transformer.h.0.ln_3.weight'")
    bare = {name: tensor for name, tensor in tensors.items() if name != "transformer.ln_f.bias"}
    reads_no(bare, "'transformer.ln_f.bias'", "config.json")
    places = "transformer.wpe.weight"
    reads_no({**tensors, places: tensors[places][:7].clone()}, "[7, 12]", "[40, 12]")
    for number, kind in ((torch.nan, torch.float32), (-torch.inf, torch.float16), (1e300, torch.float64)):
        bad = tensors[places].to(kind, copy=True)
        bad[3, 4] = number
        reads_no({**tensors, places: bad}, f"'{places}'")
    reads_no({**tensors, places: torch.ones(40, 12, dtype=torch.int64)}, "torch.int64")
    (tmp_path / "model.safetensors").write_bytes(b"{}")
    unread(tmp_path, "model.safetensors")
    save_file(tensors, tmp_path / "model.safetensors")
    rewrite(tmp_path, vocab_size=100)
    unread(tmp_path, tmp_path / "model.safetensors", "config.json")
    rewrite(tmp_path, model_type="llama")
    unread(
        tmp_path,
        tmp_path,
        "'llama'",
        "bert, camembert, distilbert, gpt2, m2m_100, marian, mbart, pegasus, roberta, t5, vit, xlm-roberta",
    )


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (GPT2, {"vocab_size": "abc"}, 'vocab_size is "abc"'),
        (GPT2, {"vocab_size": -5}, "vocab_size is -5"),
        (GPT2, {"vocab_size": None}, "lacks 'vocab_size'"),
        (GPT2, {"n_positions": None, "n_ctx": "x"}, 'n_ctx is "x"'),
        (GPT2, {"n_positions": None}, "lacks 'n_positions'"),
        (GPT2, {"n_inner": 12.0}, "n_inner is 12.0"),
        (GPT2, {"n_embd": True}, "n_embd is true"),
        (GPT2, {"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon is NaN"),
        (GPT2, {"layer_norm_epsilon": 10**400}, "layer_norm_epsilon is 1000"),
        (GPT2, {"activation_function": ["gelu"]}, 'activation_function is ["gelu"]'),
        (GPT2, {"scale_attn_weights": {"x": 1}}, 'scale_attn_weights = {"x": 1}'),
        (GPT2, {"architectures": "GPT2LMHeadModel"}, "architectures is"),
        (GPT2, {"architectures": ["GPT2ForSequenceClassification"]}, "GPT2ForSequenceClassification"),
        (GPT2, {"model_type": None}, "model_type"),
        (GPT2, {"n_layer": None}, "'n_layer'"),
        (GPT2, {"activation_function": "mish"}, ("'mish'", "relu, gelu")),
        (GPT2, {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = true"),
        (BERT, {"problem_type": ["regression"]}, 'problem_type is ["regression"]'),
        (BERT, {"hidden_dropout_prob": 1.0}, "hidden_dropout_prob is 1.0"),
        (BERT, {"id2label": {str(n): [n] for n in range(5)}}, 'id2label is {"0": [0]'),
        *((T5, {"decoder_start_token_id": one}, "decoder_start_token_id") for one in (-1, 10_000, "<pad>", True)),
        (T5, {"scale_decoder_outputs": "yes"}, 'scale_decoder_outputs is "yes"'),
        (VIT, {"image_size": {"h": 8}}, 'image_size is {"h": 8}'),
        (VIT, {"image_size": [8, 8, 8]}, "image_size is [8, 8, 8]"),
        (VIT, {"image_size": [8, "8"]}, 'image_size is [8, "8"]'),
        (VIT, {"patch_size": [4, 2]}, "patch_size 4 x 2"),
    ],
)
def test_what_a_config_says_that_we_cannot(kind: str, changes: dict[str, Any], said: Any, tmp_path: Path) -> None:
    folder_of(kind, tmp_path)
    rewrite(tmp_path, **changes)
    unread(tmp_path, tmp_path / "config.json", *([said] if isinstance(said, str) else said))


@pytest.mark.parametrize(("count", "kind"), [(39, "BertModel"), (37, BERT), (36, BERT)])
def test_symbols_that_leave_no_room_for_a_text_are_refused(count: int, kind: str, tmp_path: Path) -> None:
    """Of 40 positions; with two texts an end stands between."""
    folder_of(kind, tmp_path, **({"finetuning_task": "mrpc"} if kind == BERT else {}))
    document = json.loads((tmp_path / "tokenizer.json").read_text())
    step = document["post_processor"]
    step["special_tokens"]["[CLS]"] = {"id": "[CLS]", "ids": [2] * count, "tokens": ["[CLS]"] * count}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    if count == 36:
        assert len(read_hub_model(tmp_path).tokenizer.begin) == 36
    else:
        unread(tmp_path, tmp_path, "symbols around a text", "of the 40 tokens")


def test_values_that_no_recipe_may_have(tmp_path: Path) -> None:
    folder_of("GPT2LMHeadModel", tmp_path)
    rewrite(tmp_path, n_head=5)
    with refused(UsageError, tmp_path / "config.json", "d_model 12", "heads 5"):
        read_hub_model(tmp_path)
    rewrite(tmp_path, n_head=3, vocab_size=10**4000)
    with refused(UsageError, tmp_path / "config.json", "text.vocabulary", "1000000"):
        read_hub_model(tmp_path)


def test_settings_around_a_model_are_read_by_kind_and_one_that_does_more_is_refused(tmp_path: Path) -> None:
    folder_of("BertModel", tmp_path)
    around(tmp_path, "mean_sqrt_len_tokens")
    unread(tmp_path, "config.json", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_cls_token")
    around(tmp_path, kinds=("Transformer", "Pooling", "Dense"))
    unread(tmp_path, "modules.json", "'Dense'")
    (tmp_path / "modules.json").write_text("{")
    unread(tmp_path, "modules.json")
    around(tmp_path, do_lower_case=True)
    assert read_hub_model(tmp_path).recipe.task == "encoding"  # this tokenizer lower-cases too
    around(tmp_path, max_seq_length="long")
    unread(tmp_path, "sentence_bert_config.json", "max_seq_length")
    around(tmp_path, do_lower_case=1)
    unread(tmp_path, "sentence_bert_config.json", "do_lower_case is 1")
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": "no"}')
    unread(tmp_path, "1_Pooling/config.json", 'pooling_mode_mean_tokens is "no"')


def test_folders_that_are_none(tmp_path: Path) -> None:
    unread(tmp_path / "absent", "absent")
    unread(tmp_path, None, "config.json")
    folder_of("BertForMaskedLM", tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").rename(tmp_path / "one" / "pytorch_model.bin")
    unread(tmp_path / "one", "pytorch_model.bin", "no zip")
    (tmp_path / "one" / "pytorch_model.bin").unlink()
    unread(tmp_path / "one", "one", "model.safetensors")
    (tmp_path / "one" / "config.json").write_text("[1]")
    unread(tmp_path / "one", "config.json")


def test_translators_of_others_cannot_be_imported_yet(tmp_path: Path) -> None:
    folder_of(T5, tmp_path)
    for _ in range(2):
        for kind, what in NOT_YET.items():
            rewrite(tmp_path, model_type=kind)
            unread(tmp_path, tmp_path, what, "yet", "docs/convert.md")
        (tmp_path / "tokenizer.json").unlink(missing_ok=True)  # theirs is in files of SentencePiece


def test_a_tokenizer_of_hardly_any_pieces_is_not_that_of_the_model(tmp_path: Path) -> None:
    """As `BertTokenizerFast(vocab_file=...)` of transformers 5 writes, which ignores the file."""
    folder_of("BertForMaskedLM", tmp_path, vocab_size=1540)
    symbols = library.word_pieces([""], 5)
    assert symbols.get_vocab_size() == 5
    symbols.save(str(tmp_path / "tokenizer.json"))
    unread(tmp_path, tmp_path, "5 pieces", "symbols", "1,540 rows")
    library.word_pieces(TEXTS, 90).save(str(tmp_path / "tokenizer.json"))
    unread(tmp_path, tmp_path, "1,540 rows")
    folder_of("BertForMaskedLM", tmp_path / "filled", vocab_size=128)  # a table may be filled up
    assert read_hub_model(tmp_path / "filled").tokenizer.size == 128


@pytest.mark.parametrize(("changes", "kind"), [({"problem_type": "regression"}, "regression"), ({}, "multi")])
def test_one_label_alone(changes: dict[str, Any], kind: str, tmp_path: Path) -> None:
    folder_of("BertForSequenceClassification", tmp_path, labels=("LABEL_0",), **changes)
    assert read_hub_model(tmp_path).recipe.classification.kind == kind


def test_a_bare_encoder(tmp_path: Path) -> None:
    peer, theirs = folder_of("BertModel", tmp_path / "theirs")
    assert config_of(tmp_path / "theirs")["architectures"] == ["BertModel"]
    recipe, tokenizer, model = imported(tmp_path)
    assert (recipe.task, recipe.model.pool, recipe.model.pooler) == ("encoding", "first", True)
    batch = theirs(TEXTS, padding=True, return_tensors="pt")
    said = peer(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
    texts = packed(framed(tokenizer, TEXTS))
    assert_near(model(texts), said.pooler_output, 1e-4)
    assert_near(model.encoder(texts), unpadded(said.last_hidden_state, framed(tokenizer, TEXTS)), 1e-4)


@pytest.mark.parametrize(("way", "pool"), [("cls_token", "first"), ("mean_tokens", "mean"), ("max_tokens", "max")])
def test_an_encoder_of_sentences_pools_as_it_says(way: str, pool: str, tmp_path: Path) -> None:
    peer, theirs = folder_of("BertModel", tmp_path / "theirs")
    around(tmp_path / "theirs", way, ("Transformer", "Pooling", "Normalize"), max_seq_length=16)
    recipe, tokenizer, model = imported(tmp_path)
    assert (recipe.model.pool, recipe.model.pooler, recipe.data.max_tokens) == (pool, False, 16)
    assert recipe.encoding.normalise
    for text, found in zip(TEXTS, model(packed(framed(tokenizer, TEXTS))), strict=True):
        (hidden,) = peer(**theirs(text, return_tensors="pt")).last_hidden_state
        expected = {"first": hidden[0], "mean": hidden.mean(0), "max": hidden.amax(0)}[pool]
        assert_near(found, expected, 1e-4)


def test_the_card_says_where_it_is_from(tmp_path: Path) -> None:
    folder_of("BertForTokenClassification", tmp_path / "some-tagger", labels=TAGS)
    import_model(tmp_path / "some-tagger", tmp_path / "ours")
    said = (tmp_path / "ours" / "card.md").read_text()
    assert "# A tagger" in said
    assert "`some-tagger`" in said
    assert "No scores are known" in said
