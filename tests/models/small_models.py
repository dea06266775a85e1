"""Small models and packed batches to test parts with; every weight is random, so that no bias or gain hides."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import BertSection, GptSection, RnnEncoderSection, RnnSection, TransformerSection, VitSection
from regard.data.batches.batch import Packed, PairBatch
from regard.models import build
from regard.models.bert import Bert, Vit
from regard.models.inputs import Pairs, Patches, Tokens, pairs
from regard.models.rnn import RecurrentEncoder, Rnn
from regard.models.transformer import Gpt, Transformer
from regard.nn.attention import backends, multi_head
from regard.nn.embeddings import TokenEmbedding, WordRows
from regard.nn.layout import Sequences
from regard.nn.normalization import BatchNorm
from regard.text.word_features import FEATURES

PIECES = 23
CLASSES = 5
SIZES: dict[str, Any] = {"d_model": 12, "d_ff": 20, "heads": 3, "max_positions": 64, "dropout": 0.0, "norm_groups": 3}
SIZES |= {"relative_buckets": 8, "relative_distance": 16}


def section(**choices: Any) -> TransformerSection:
    named = {"decoder_norm": "batch"} if choices.get("norm") == "batch" else {}
    return TransformerSection(**{"encoder_layers": 2, "decoder_layers": 2, **SIZES, **named, **choices})


def small(
    model: TransformerSection | None = None, *, pieces: int = PIECES, dtype: torch.dtype = torch.float64, key: int = 7
) -> Transformer:
    """A Transformer in evaluation mode, all its weights drawn at random but the start symbol's row."""
    built = build.transformer(model or section(), pieces, pieces, key)
    stir(built, key)
    settle(built, pieces)
    return built.to(dtype).eval()


def transformer(
    *, pieces: int = PIECES, dtype: torch.dtype = torch.float64, key: int = 7, **choices: Any
) -> Transformer:
    """The same of choices."""
    return small(section(**choices), pieces=pieces, dtype=dtype, key=key)


def _stirred(built: Any, dtype: torch.dtype, key: int) -> Any:
    """In evaluation mode, all weights moved a little but the start symbol's row."""
    stir(built, key)
    return built.to(dtype).eval()


def rnn(*, pieces: int = PIECES, dtype: torch.dtype = torch.float64, key: int = 7, **choices: Any) -> Rnn:
    """A recurrent encoder-decoder."""
    return _stirred(build.rnn(rnn_section(**choices), pieces, pieces, key), dtype, key)


def rnn_section(**choices: Any) -> RnnSection:
    return RnnSection(**{"encoder_layers": 2, "decoder_layers": 2, "d_model": 12, "dropout": 0.0, **choices})


def gpt(*, pieces: int = PIECES, dtype: torch.dtype = torch.float64, key: int = 7, **choices: Any) -> Gpt:
    """A decoder-only model."""
    return _stirred(build.gpt(GptSection(**{"layers": 2, **SIZES, **choices}), pieces, key), dtype, key)


def bert(*, dtype: torch.dtype = torch.float64, key: int = 7, head: str = "words", **choices: Any) -> Bert:
    """An encoder-only model with one of the heads."""
    section = BertSection(**{"layers": 2, **SIZES, **choices})
    made = build.words(section) if head == "words" else getattr(build, head)(section, CLASSES)
    return _stirred(build.bert(section, PIECES, made, key), dtype, key)


def rnn_encoder(
    *, dtype: torch.dtype = torch.float64, key: int = 7, head: str = "classes", **choices: Any
) -> RecurrentEncoder:
    """A recurrent reader with one of the heads."""
    section = RnnEncoderSection(**{"d_model": 12, "dropout": 0.0, **choices})
    return _stirred(build.rnn_encoder(section, PIECES, getattr(build, head)(section, CLASSES), key), dtype, key)


IMAGE: dict[str, Any] = {"height": 4, "width": 6, "channels": 1, "patch": 2}
"""Six patches of four pixels."""


def vit(*, dtype: torch.dtype = torch.float64, key: int = 7, **choices: Any) -> Vit:
    """An encoder of images."""
    section = VitSection(**{"layers": 2, **SIZES, **IMAGE, **choices})
    return _stirred(build.vit(section, CLASSES, key), dtype, key)


def settle(built: Transformer, pieces: int) -> None:
    """Give batch norms the averages of 200 pairs: those of a few make entries grow from layer to layer, to any size."""
    norms = [part for part in built.modules() if isinstance(part, BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        lengths = np.random.default_rng(5).integers(1, 12, (2, 200)).tolist()
        built.train()(pairs(batch(sentences(lengths[0], 3, pieces), sentences(lengths[1], 4, pieces), pieces=pieces)))
    for norm in norms:
        norm.momentum = BatchNorm.momentum


def stir(module: nn.Module, key: int = 7) -> None:
    """Move every weight a little; the start symbol's row of a table stays zero."""
    generator = torch.Generator().manual_seed(key)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator, dtype=torch.float32).to(weight))
        for part in module.modules():
            if isinstance(part, TokenEmbedding):
                part.weight[part.pieces :] = 0


def sentences(lengths: Iterable[int], seed: int = 0, pieces: int = PIECES) -> list[np.ndarray]:
    """Random ids, each sentence ended by ``</s>`` (0), which ``lengths`` count; a length of 0 has not even that."""
    random = np.random.default_rng(seed)
    drawn = [np.append(random.integers(2, pieces, max(length - 1, 0)), 0) for length in lengths]
    return [ids[:length].astype(np.int64) for ids, length in zip(drawn, lengths, strict=True)]


def packed(ids: Sequence[np.ndarray], tail: int = 0, spare: int = 0) -> Packed:
    """Sentences end to end, ``tail`` tokens of none of them behind, ``spare`` empty sentences."""
    lengths_B = np.array([len(i) for i in ids] + [0] * spare, np.int64)
    ids_T = np.concatenate([*ids, np.zeros(tail, np.int64)])
    return Packed(ids_T, np.cumsum(lengths_B) - lengths_B, lengths_B, len(ids))


def texts(given: Sequence[np.ndarray], tail: int = 0, spare: int = 0, segments: bool = False) -> Tokens:
    """Texts end to end, ``tail`` tokens of none of them behind; with two ``segments`` their tokens in turn."""
    ids_T = torch.from_numpy(np.concatenate([*given, np.zeros(tail, np.int64)]))
    segments_T = torch.arange(len(ids_T)) % 2 if segments else None
    return Tokens(ids_T, sequences([len(one) for one in given], tail, spare), segments_T, words(ids_T, tail))


def words(ids_T: Tensor, tail: int = 0, buckets: int = 11) -> WordRows:
    """Each token a word, whose features its id decides; a token of no text has none."""
    real = len(ids_T) - tail
    word_T = torch.cat([torch.arange(1, real + 1), torch.zeros(tail, dtype=torch.int64)])
    return WordRows(word_T, (ids_T[:real, None] * torch.arange(1, FEATURES + 1)) % buckets)


def images(count: int, dtype: torch.dtype = torch.float64, seed: int = 0, tail: int = 0) -> Patches:
    """Images as patches, a row of zeros before each."""
    patches = (IMAGE["height"] // 2) * (IMAGE["width"] // 2)
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randn(count, 1 + patches, 4, generator=generator, dtype=torch.float64)
    pixels[:, 0] = 0
    pixels_TP = torch.cat([pixels.flatten(0, 1), torch.zeros(tail, 4, dtype=torch.float64)]).to(dtype)
    return Patches(pixels_TP, sequences([1 + patches] * count, tail))


def batch(
    source: Sequence[np.ndarray], target: Sequence[np.ndarray], tail: int = 0, spare: int = 0, pieces: int = PIECES
) -> PairBatch:
    """Pairs for teacher forcing: the target shifted right behind the start symbol."""
    shifted = [np.append(pieces, ids[:-1]) for ids in target]
    side = packed(shifted, tail, spare)
    labels_T = np.concatenate([*target, np.zeros(tail, np.int64)])
    weight_T = np.zeros(len(labels_T), np.float32)
    weight_T[: len(labels_T) - tail] = 1.0
    return PairBatch(packed(source, tail, spare), side, labels_T, weight_T, np.arange(len(source)))


def some_pairs(lengths: Sequence[tuple[int, int]], tail: int = 0, spare: int = 0, seed: int = 0) -> Pairs:
    source = sentences([s for s, _ in lengths], seed)
    target = sentences([t for _, t in lengths], seed + 1000)
    return pairs(batch(source, target, tail, spare))


def sequences(lengths: Sequence[int], tail: int = 0, spare: int = 0) -> Sequences:
    """Sequences end to end with a tail of tokens that belong to none, and spare empty ones."""
    lengths_B = torch.tensor([*lengths, *[0] * spare], dtype=torch.int64)
    starts_B = lengths_B.cumsum(0) - lengths_B
    return Sequences(starts_B, lengths_B, len(lengths), max(lengths, default=0), sum(lengths) + tail)


def arrays(module: nn.Module) -> dict[str, np.ndarray]:
    """The weights by name in float64, a tied one under each of its names."""
    return {n: p.detach().double().numpy() for n, p in module.named_parameters(remove_duplicate=False)}


def tolerance(dtype: torch.dtype) -> float:
    """Of the largest entry (ARCHITECTURE, the laws)."""
    return {torch.float64: 1e-9, torch.float32: 1e-4}[dtype]


def assert_near(found: Tensor | np.ndarray, expected: Tensor | np.ndarray, most: float, what: str = "") -> None:
    """The largest difference is at most ``most`` of the largest expected entry."""
    found, expected = (np.asarray(x.detach() if isinstance(x, Tensor) else x, np.float64) for x in (found, expected))
    assert found.shape == expected.shape, what
    assert np.isfinite(found).all(), what
    scale = float(np.abs(expected).max(initial=0.0))
    difference = float(np.abs(found - expected).max(initial=0.0))
    assert difference <= most * max(scale, 1e-30), f"{what}: {difference} of {scale}"


def same(one: Tensor, other: Tensor) -> bool:
    """Equal to the bit."""
    return one.dtype == other.dtype and one.numpy().tobytes() == other.numpy().tobytes()


@contextmanager
def only(*allowed: Any) -> Iterator[None]:
    """Attention is computed by these ways only."""
    with patch.object(multi_head, "BACKENDS", allowed or (backends.Reference(),)):
        yield
