"""Scenes of small models of random weights: ids read and written, without any tokenizer."""

from types import SimpleNamespace
from typing import Any

from regard.config import GptSection, RnnSection, TransformerSection
from regard.inspection.forward.inputs import ModelInputs, Token
from regard.models.build import gpt, rnn, transformer
from regard.models.captured_attention import pack_sentences
from tests.models.small_models import stir

SIZES: dict[str, Any] = {"d_model": 12, "d_ff": 20, "heads": 3, "dropout": 0.0}
READ, WRITTEN = [5, 6, 7, 8, 0], [20, 9, 10]


def scene_of(section: Any, model: Any, read_ids: list[int] = READ) -> ModelInputs:
    stir(model)
    task = SimpleNamespace(model=model.eval(), recipe=SimpleNamespace(model=section))
    read, written = (
        pack_sentences([read_ids], model.output.weight.device),
        pack_sentences([WRITTEN], model.output.weight.device),
    )
    tokens = [tuple(Token(str(id), 0, 0) for id in ids) for ids in (read_ids, WRITTEN)]
    if section.family == "gpt":
        return ModelInputs(task, "", "", tokens[0], tokens[0], tokens[0], lambda: model(read))
    return ModelInputs(
        task, "", "", tokens[0], *[tokens[1]] * 2, lambda: model.decoder(written, model.encoder(read), read)
    )


def both(**choices: Any) -> ModelInputs:
    section = TransformerSection(encoder_layers=2, decoder_layers=2, **SIZES, **choices)
    return scene_of(section, transformer(section, 20, 20, 3))


def recurrent(**choices: Any) -> ModelInputs:
    section = RnnSection(d_model=12, dropout=0.0, **choices)
    return scene_of(section, rnn(section, 20, 20, 3))


def alone() -> ModelInputs:
    """A language model's."""
    section = GptSection(layers=2, **SIZES)
    return scene_of(section, gpt(section, 20, 3))
