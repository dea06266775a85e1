"""Small random translators as CTranslate2's own specifications write them."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.system.errors import RegardError

ctranslate2 = pytest.importorskip("ctranslate2")
from ctranslate2.specs import TransformerSpec, common_spec  # noqa: E402

WIDTH, INNER, HEADS = 16, 24, 2
SYMBOLS = ["<unk>", "<s>", "</s>"]
WORDS = [a + b for a in "bdfgklm" for b in "aeiou"]
OTHERS = [a + b for a in "npqrstv" for b in "aeiou"]


def sentences(words: list[str] = WORDS, count: int = 30, seed: int = 1) -> list[str]:
    draws = random.Random(seed)
    return [" ".join(draws.choices(words, k=draws.randint(1, 9))) for _ in range(count)]


def write(
    folder: Path,
    *,
    layers: tuple[int, int] = (2, 1),
    activation: str = "RELU",
    table: np.ndarray | None = None,
    shared: bool = True,
    tied: bool = True,
    zero: bool = False,
    heads: int = HEADS,
    scale: Any = True,
    quantization: str | None = None,
    names: list[str] | None = None,
    buckets: tuple[int, int] | None = None,
    seed: int = 0,
    **spec: Any,
) -> None:
    """Write a folder.

    Args:
        table: of positions.
        buckets: of relative positions, and the distance from which on all are one.
        zero: the decoder starts with zeros.
        heads: the decoder's.
        tied: table and output are one.
    """
    draws = np.random.default_rng(seed)

    def drawn(*shape: int, size: float = 0.35) -> np.ndarray:
        return (size * draws.normal(size=shape)).astype(np.float32)

    def linear(part: Any, rows: int, columns: int) -> None:
        part.weight, part.bias = drawn(rows, columns), drawn(rows)

    def norm(part: Any) -> None:
        part.gamma = 1 + drawn(WIDTH)
        if hasattr(part, "beta"):
            part.beta = drawn(WIDTH)

    spec |= {"relative_attention_bias": True} if buckets else {}
    model = TransformerSpec.from_config(layers, HEADS, activation=getattr(common_spec.Activation, activation), **spec)
    source = names or SYMBOLS + WORDS
    target = source if shared else SYMBOLS + OTHERS
    tables = [drawn(len(source), WIDTH, size=0.25), drawn(len(target), WIDTH, size=0.25)]
    model.encoder.embeddings[0].weight, model.decoder.embeddings.weight = tables[0], tables[0] if shared else tables[1]
    linear(model.decoder.projection, len(target), WIDTH)
    if tied:
        model.decoder.projection.weight = model.decoder.embeddings.weight
    model.decoder.projection.bias[:3] = -30, -30, 3.5  # no symbols, as ours never writes them; ends soon
    model.decoder.start_from_zero_embedding = zero
    model.decoder.num_heads = np.int16(heads)
    for side in (model.encoder, model.decoder):
        side.scale_embeddings = scale
        if table is not None:
            side.position_encodings.encodings = table
        for name in ("layer_norm", "layernorm_embedding"):
            if hasattr(side, name):
                norm(getattr(side, name))
        if buckets:
            bias = drawn(buckets[0], HEADS, size=1.0)
            for layer in side.layer:
                layer.self_attention.relative_attention_bias = bias
                layer.self_attention.relative_attention_max_distance = np.int32(buckets[1])
        for layer in side.layer:
            for name in ("self_attention", "attention"):
                if hasattr(layer, name):
                    part = getattr(layer, name)
                    rows = [3, 1] if name == "self_attention" else [1, 2, 1]
                    for one, times in zip(part.linear, rows, strict=True):
                        linear(one, times * WIDTH, WIDTH)
                    norm(part.layer_norm)
            linear(layer.ffn.linear_0, INNER, WIDTH)
            linear(layer.ffn.linear_1, WIDTH, INNER)
            norm(layer.ffn.layer_norm)
    model.register_source_vocabulary(source)
    model.register_target_vocabulary(target)
    model.validate()
    model.optimize(quantization=quantization)
    folder.mkdir(exist_ok=True)
    model.save(str(folder))


HUB = ("Marian", "M2M100", "MBart", "Pegasus", "Bart")


def write_from_hub(kind: str, folder: Path, seed: int = 4) -> None:
    """Write what their converter makes of a random model of ``transformers``, with words as tokens."""
    from tests.runs.convert.small_peers import transformers

    sizes = {"d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 64}
    sizes |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), INNER)
    sizes |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), HEADS)
    codes = {"M2M100": ["eng_Latn", "deu_Latn"], "MBart": ["en_XX", "de_DE"]}.get(kind, [])
    names = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, *codes, *["<pad>"] * (kind == "Marian")]
    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(**sizes, vocab_size=len(names), pad_token_id=1)
    config.pad_token_id = len(names) - 1 if kind == "Marian" else 1
    config.normalize_before, config.normalize_embedding = kind in ("MBart", "Pegasus"), kind in ("MBart", "Bart")
    model = getattr(transformers, "MarianMTModel" if kind == "Marian" else f"{kind}ForConditionalGeneration")(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name or kind in ("MBart", "Bart"):
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
        spec = ctranslate2.converters.transformers._MODEL_LOADERS[f"{kind}Config"].get_model_spec(model)
    kept = names[: len(names) - (kind == "Marian")]
    bias = torch.zeros(len(kept))
    bias[[0, 1, 3]], bias[2] = -30, 2.0 if codes else 3.5
    bias[len(kept) - len(codes) :] = -30
    spec.decoder.projection.bias = bias
    spec.config.decoder_start_token = "<pad>" if kind == "Pegasus" else "</s>"
    spec.register_source_vocabulary(kept)
    spec.register_target_vocabulary(kept)
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))


def refusal(read: Callable[[], object]) -> RegardError | None:
    """The sentence in which reading ends, if it does; anything else that is raised fails."""
    try:
        read()
    except RegardError as error:
        return error
    return None


def translated(
    folder: Path, texts: list[list[str]], beam: int, prefix: list[str] | None = None, room: int = 40
) -> list[tuple[list[str], float]]:
    """Their tokens and scores, not divided by lengths; also what is empty."""
    peer = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", intra_threads=1, inter_threads=1)
    found = peer.translate_batch(
        texts,
        target_prefix=[prefix] * len(texts) if prefix else None,
        beam_size=beam,
        length_penalty=0,
        return_scores=True,
        max_decoding_length=room,
        min_decoding_length=0,
        max_batch_size=32,
    )
    skipped = len(prefix or [])
    return [(one.hypotheses[0][skipped:], one.scores[0]) for one in found]
