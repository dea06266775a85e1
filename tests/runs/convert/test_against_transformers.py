"""Same weights, same numbers as ``transformers``: what models say and the gradient of every parameter."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.models.inputs import Patches
from regard.nn.layout import Sequences
from regard.runs.convert.layouts import FORMATS, format
from tests.models.small_models import assert_near, tolerance
from tests.runs.convert import small_peers as peers
from tests.runs.convert.small_peers import LENGTHS, PIECES, ids, ours, packed, padded, saved, transformers, unpadded

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
SEGMENTS = [(torch.arange(length) >= length // 2).long() for length in LENGTHS]


@pytest.fixture(autouse=True)
def _exact():
    with peers.exact():
        yield


def direction(value: Tensor) -> Tensor:
    return torch.randn(value.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def assert_same(found: Tensor, expected: Tensor) -> None:
    """What both say; the gradients of a random direction are then in both."""
    assert_near(found, expected, tolerance(found.dtype))
    along = direction(expected)
    (found * along.to(found.dtype)).sum().backward()
    (expected * along).sum().backward()


def assert_same_gradients(model: nn.Module, peer: Any, table: list[format.Row], folder: Path) -> None:
    """Every parameter's, but of the row of the start symbol, which is never learned here."""
    expected = format.inward(table, peers.saved_gradients(peer, folder / "gradients"), "test")
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, parameter in model.named_parameters():
        theirs_grad = expected[name]
        found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        if len(theirs_grad) == PIECES + 1:
            found, theirs_grad = found[:-1], theirs_grad[:-1]
        # What moves all scores of a query alike has no gradient but rounding: measure that by the others.
        scale = max(largest / max(float(theirs_grad.abs().max()), 1e-30), 1.0) if name.endswith("key.bias") else 1.0
        assert_near(found, theirs_grad, tolerance(parameter.dtype) * scale, name)


@pytest.mark.one_of(12)
@DTYPES
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
@pytest.mark.parametrize(("head", "task"), peers.BERTS.items())
def test_bert_with_each_head(head: str, task: str, activation: str, dtype: torch.dtype, tmp_path: Path) -> None:
    config = transformers.BertConfig(**peers.BERT, hidden_act=activation)
    peer = peers.theirs(f"BertFor{head}", config)
    model, table = ours(FORMATS["bert"], task, config, saved(peer, tmp_path), dtype)
    texts = ids(LENGTHS)
    padded_ids, mask = padded(texts)
    expected = peer(input_ids=padded_ids, attention_mask=mask, token_type_ids=padded(SEGMENTS, 0)[0]).logits
    said = model(packed(texts, SEGMENTS))
    found = model.head.scores(said) if task == "masked-lm" else said
    assert_same(found, expected if task == "classification" else unpadded(expected, texts))
    assert_same_gradients(model, peer, table, tmp_path)


@pytest.mark.one_of(10)
@DTYPES
@pytest.mark.parametrize("kind", ["Roberta", "XLMRoberta", "Camembert", "DistilBert", "sinusoids"])
@pytest.mark.parametrize(("head", "task"), peers.BERTS.items())
def test_encoders_like_bert_with_each_head(kind: str, head: str, task: str, dtype: torch.dtype, tmp_path: Path) -> None:
    own, kind = ({"sinusoidal_pos_embds": True}, "DistilBert") if kind == "sinusoids" else ({}, kind)
    config = getattr(transformers, f"{kind}Config")(**peers.ENCODERS[kind], **own)
    peer = peers.theirs(f"{kind}For{head}", config)
    format = FORMATS[config.model_type]
    tensors = format.canonical_tensors(saved(peer, tmp_path), "test")
    model, table = ours(format, task, config, tensors, dtype)
    texts = ids(LENGTHS)
    padded_ids, mask = padded(texts)
    expected = peer(input_ids=padded_ids, attention_mask=mask).logits
    said = model(packed(texts))
    found = model.head.scores(said) if task == "masked-lm" else said
    assert_same(found, expected if task == "classification" else unpadded(expected, texts))
    if not own:  # sinusoids are not learned there
        assert_same_gradients(model, peer, table, tmp_path)


@DTYPES
def test_gpt2(dtype: torch.dtype, tmp_path: Path) -> None:
    config = transformers.GPT2Config(**peers.GPT2)
    peer = peers.theirs("GPT2LMHeadModel", config)
    model, table = ours(FORMATS["gpt2"], "language-model", config, saved(peer, tmp_path), dtype)
    texts = ids(LENGTHS)
    padded_ids, mask = padded(texts)
    expected = peer(input_ids=padded_ids, attention_mask=mask).logits
    assert_same(model.scores(model(packed(texts))), unpadded(expected, texts))
    assert_same_gradients(model, peer, table, tmp_path)


@pytest.mark.one_of(6)
@DTYPES
@pytest.mark.parametrize(
    ("feed_forward", "tied"), [("relu", True), ("gated-gelu", False), ("gated-silu", True)], ids=["1.0", "1.1", "gated"]
)
def test_t5(feed_forward: str, tied: bool, dtype: torch.dtype, tmp_path: Path) -> None:
    config = transformers.T5Config(**peers.T5, feed_forward_proj=feed_forward, tie_word_embeddings=tied)
    peer = peers.theirs("T5ForConditionalGeneration", config)
    if not tied:
        peer.lm_head.weight = nn.Parameter(direction(peer.shared.weight))
    model, table = ours(FORMATS["t5"], "text-to-text", config, saved(peer, tmp_path), dtype)
    sources = ids([7, 20, 3, 1])  # beyond the longest distance told apart
    targets = ids(LENGTHS, 1, first=0)  # the pad piece starts a text as in theirs, so that its row's gradient counts
    source_ids, source_mask = padded(sources)
    target_ids, target_mask = padded(targets)
    asked = {"decoder_input_ids": target_ids, "decoder_attention_mask": target_mask}
    expected = peer(input_ids=source_ids, attention_mask=source_mask, **asked)
    memory_SD = model.encoder(packed(sources))
    assert_near(memory_SD, unpadded(expected.encoder_last_hidden_state, sources), tolerance(dtype), "memory")
    found = model.scores(model.decoder(packed(targets), memory_SD, packed(sources)))
    assert_same(found, unpadded(expected.logits, targets))
    if not tied:  # their one table of what is read has the gradients of our two
        read = model.encoder.input.tokens.weight.grad, model.decoder.input.tokens.weight.grad
        model.encoder.input.tokens.weight.grad = model.decoder.input.tokens.weight.grad = read[0] + read[1]
    assert_same_gradients(model, peer, table, tmp_path)


@pytest.mark.one_of(6)
@DTYPES
@pytest.mark.parametrize("name", peers.TRANSLATORS)
def test_translators(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    kind, more = peers.TRANSLATORS[name]
    config = getattr(transformers, f"{kind}Config")(**{**peers.BART, **more})
    peer = peers.theirs({"Marian": "MarianMTModel"}.get(kind, f"{kind}ForConditionalGeneration"), config)
    if kind == "Marian":
        peer.final_logits_bias = direction(peer.final_logits_bias)
        for side in (peer.model.encoder, peer.model.decoder):
            side.embed_positions.weight.data = side.embed_positions.create_weight().double()
    format = FORMATS[config.model_type]
    tensors = format.canonical_tensors(saved(peer, tmp_path), "test")
    model, _ = ours(format, "translation", config, tensors, dtype)
    start = config.decoder_start_token_id
    sources, targets = ids([7, 20, 3, 1]), ids(LENGTHS, 1, first=start)
    source_ids, source_mask = padded(sources)
    target_ids, target_mask = padded(targets)
    asked = {"decoder_input_ids": target_ids, "decoder_attention_mask": target_mask}
    expected = peer(input_ids=source_ids, attention_mask=source_mask, **asked)
    memory_SD = model.encoder(packed(sources))
    found = model.scores(model.decoder(packed(targets), memory_SD, packed(sources)))
    most = max(tolerance(dtype), 1e-6 * (name == "m2m"))  # its sinusoids are computed in float32
    assert_near(found, unpadded(expected.logits, targets)[:, : model.pieces], most)


@DTYPES
def test_vit(dtype: torch.dtype, tmp_path: Path) -> None:
    config = transformers.ViTConfig(**peers.VIT)
    peer = peers.theirs("ViTForImageClassification", config)
    model, table = ours(FORMATS["vit"], "image-classification", config, saved(peer, tmp_path), dtype)
    images = torch.randn(3, 2, 8, 12, dtype=torch.float64)
    found = model(Patches(peers.pixels(images, 4).to(dtype), Sequences.end_to_end([7] * 3)))
    assert_same(found, peer(pixel_values=images).logits)
    assert_same_gradients(model, peer, table, tmp_path)
