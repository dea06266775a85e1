"""Engines of small models, beside the models themselves."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from regard.config import BertSection, GptSection, RnnEncoderSection, TransformerSection
from regard.kernels.packing import Packer, Precision
from regard.models.inputs import Tokens
from regard.models.store import named_tensors
from regard.models.transformer import Transformer
from tests.laws.families import Family
from tests.models import small_models as small


def taken(model: torch.nn.Module) -> Callable[..., np.ndarray]:
    """The weights by the names they have in a model file."""
    weights = {name: tensor.detach().float().numpy() for name, tensor in named_tensors(model).items()}

    def take(name: str, *shape: int) -> np.ndarray:
        assert weights[name].shape == shape, name
        return weights[name]

    return take


def engine(
    model: Transformer, section: TransformerSection, pieces: int = small.PIECES, precision: Precision = "fp32"
) -> Any:
    """The engine of a model."""
    from regard.engine.build import transformer

    return transformer(section, pieces, pieces, taken(model), Packer(precision))


def reader(model: Any, choices: Mapping[str, Any]) -> Any:
    """The engine of a small encoder-only model."""
    from regard.engine.readers.build import HeadShape, bert

    chosen = {name: word for name, word in choices.items() if name != "head"}
    section = BertSection(**{"layers": 2, **small.SIZES, **chosen})
    return bert(section, small.PIECES, HeadShape(choices.get("head", "words"), small.CLASSES), taken(model))


def recurrent(model: Any, choices: Mapping[str, Any]) -> Any:
    """The engine of a small recurrent reader."""
    from regard.engine.readers.build import HeadShape, rnn_encoder

    chosen = {name: word for name, word in choices.items() if name != "head"}
    section = RnnEncoderSection(**{"d_model": 12, "dropout": 0.0, **chosen})
    return rnn_encoder(section, small.PIECES, HeadShape(choices["head"], small.CLASSES), taken(model))


def gpt(model: Any, choices: Mapping[str, Any], window: int = 1000, precision: Precision = "fp32") -> Any:
    """The engine of a small decoder-only model."""
    from regard.engine.gpt import gpt

    section = GptSection(**{"layers": 2, **small.SIZES, **choices})
    return gpt(section, small.PIECES, window, taken(model), Packer(precision))


def texts(given: Tokens) -> Any:
    """What a model reads, as its engine does."""
    from regard.engine.texts import Texts

    segments_T = None if given.segments_T is None else given.segments_T.numpy()
    words = None if given.words is None else (given.words.word_T.numpy(), given.words.features_WE.numpy())
    lengths_B = given.sequences.lengths_B[: given.sequences.count].numpy()
    return Texts(given.ids_T.numpy(), lengths_B, segments_T, words)


def writing(family: Family, pieces: int = small.PIECES, precision: Precision = "fp32") -> tuple[Any, Any]:
    """A small encoder-decoder in float32, and its engine."""
    model = family.model(torch.float32, pieces=pieces)
    return model, engine(model, small.section(**family.choices), pieces, precision)


def pair(choices: Mapping[str, Any], broken: bool = False, precision: Precision = "fp32") -> tuple[Transformer, Any]:
    """A small Transformer in float32, and its engine; in a broken one the start symbol is no number."""
    model = small.transformer(dtype=torch.float32, **choices)
    if broken:
        with torch.no_grad():
            model.decoder.input.tokens.weight[small.PIECES] = torch.nan
    return model, engine(model, small.section(**choices), precision=precision)
