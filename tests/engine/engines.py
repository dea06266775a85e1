"""Engines of small models, beside the models themselves, and a step that both make, compared row by row."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from regard.config import BertSection, GptSection, RnnEncoderSection
from regard.decoding.step import with_weights
from regard.models.decoding import stepper
from regard.models.inputs import Tokens
from regard.models.store import named_tensors
from regard.system.kernels.packing import Packer, Precision
from tests.laws.families import Family
from tests.models import small_models as small
from tests.models.small_models import PIECES, assert_near, tolerance

MOST = tolerance(torch.float32)


def engine(model: Any, family: Family, pieces: int = PIECES, precision: Precision = "fp32", window: int = 1000) -> Any:
    """The engine of a small model of a family, by the weights that it has in a model file."""
    from regard.engine.build import transformer
    from regard.engine.gpt import gpt
    from regard.engine.readers import HeadShape, bert, rnn_encoder

    weights = {name: tensor.detach().float().numpy() for name, tensor in named_tensors(model).items()}

    def take(name: str, *shape: int) -> np.ndarray:
        assert weights[name].shape == shape, name
        return weights[name]

    chosen: dict[str, Any] = {name: word for name, word in family.choices.items() if name != "head"}
    made = take, Packer(precision)
    if family.name == "transformer":
        return transformer(small.section(**chosen), pieces, pieces, *made)
    if family.name == "gpt":
        return gpt(GptSection(**{"layers": 2, **small.SIZES, **chosen}), pieces, window, *made)
    shape = HeadShape(family.choices.get("head", "words"), small.CLASSES)
    if family.name == "bert":
        return bert(BertSection(**{"layers": 2, **small.SIZES, **chosen}), pieces, shape, *made)
    return rnn_encoder(RnnEncoderSection(**{"d_model": 12, "dropout": 0.0, **chosen}), pieces, shape, *made)


def both(family: Family, **options: Any) -> tuple[Any, Any]:
    """A small model in float32, and its engine."""
    model = family.model(torch.float32, **({"pieces": options["pieces"]} if "pieces" in options else {}))
    return model, engine(model, family, **options)


def pair(choices: Mapping[str, Any], broken: bool = False, precision: Precision = "fp32") -> tuple[Any, Any]:
    """A small Transformer in float32, and its engine; in a broken one the start symbol is no number."""
    family = Family("transformer", dict(choices))
    model = family.model(torch.float32)
    if broken:
        with torch.no_grad():
            model.decoder.input.tokens.weight[PIECES] = torch.nan
    return model, engine(model, family, precision=precision)


def texts(given: Tokens) -> Any:
    """What a model reads, as its engine does."""
    from regard.engine.stack import Texts

    segments_T = None if given.segments_T is None else given.segments_T.numpy()
    words = None if given.words is None else (given.words.word_T.numpy(), given.words.features_WE.numpy())
    lengths_B = given.sequences.lengths_B[: given.sequences.count].numpy()
    return Texts(given.ids_T.numpy(), lengths_B, segments_T, words)


class Beside:
    """A step that both make, each answer compared."""

    def __init__(self, family: Family, window: int | None = None) -> None:
        model = family.model(torch.float32)
        self.fast = with_weights(engine(model, family, window=window or 1000))
        # In float64: torch's float32 group norm is off by 1e-4 where a mean is far above a deviation.
        self.torch = with_weights(stepper(model.double(), **({"window": window} if window else {})))
        self.random = np.random.default_rng(1)

    def start(self, sources) -> None:
        self.states = self.torch.start(sources), self.fast.start(sources)

    def admit(self, sources) -> None:
        one, other = self.states
        self.states = self.torch.admit(one, sources), self.fast.admit(other, sources)

    def select(self, rows) -> None:
        one, other = self.states
        self.states = self.torch.select(one, np.array(rows)), self.fast.select(other, np.array(rows))

    def step(self, tokens_N) -> None:
        one, expected = self.torch.step(self.states[0], tokens_N)
        other, found = self.fast.step(self.states[1], tokens_N)
        self.states = one, other
        log_probability_NV = expected.all()
        assert_near(found.all(), log_probability_NV, MOST)
        ids_Nk, best_Nk = found.best(4, (1, 5))
        assert_near(best_Nk, np.take_along_axis(log_probability_NV, ids_Nk, 1), MOST)
        assert_near(best_Nk, expected.best(4, (1, 5))[1], MOST)
        assert not np.isin(ids_Nk, (1, 5)).any()
        assert_near(found.of(tokens_N % PIECES), expected.of(tokens_N % PIECES), MOST)
        weight_NHS, wanted_NHS = found.context(), expected.context()
        assert (weight_NHS is None) == (wanted_NHS is None)
        if wanted_NHS is not None:
            assert_near(weight_NHS, wanted_NHS, 1e-5)
            assert_near(weight_NHS.sum(2), wanted_NHS.sum(2).round(), 1e-5)

    def read(self, rows: int) -> None:
        self.step(self.random.integers(2, PIECES, rows))
