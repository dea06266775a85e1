"""Scenes of small models of random weights: ids read and written, without any tokenizer; and what scenes predict."""

from types import SimpleNamespace
from typing import Any

from regard.config import RnnSection, TransformerSection
from regard.inspection.forward.outputs import Candidate, candidates, scores
from regard.inspection.forward.record import ModelInputs, Token
from regard.models.build import rnn, transformer
from regard.models.captured_attention import pass_over
from tests.models.small_models import stir

SIZES: dict[str, Any] = {"d_model": 12, "d_ff": 20, "heads": 3, "dropout": 0.0}
READ, WRITTEN = [5, 6, 7, 8, 0], [20, 9, 10]


def top_candidates(seen: ModelInputs, k: int = 5) -> list[list[Candidate]]:
    """The most probable pieces of a pass, by position."""
    return candidates(seen.task, scores(seen), k)


def scene_of(section: Any, model: Any) -> ModelInputs:
    stir(model)
    task: Any = SimpleNamespace(model=model.eval(), recipe=SimpleNamespace(model=section))
    read, written = (tuple(Token(str(id), 0, 0) for id in ids) for ids in (READ, WRITTEN))
    return ModelInputs(task, "", "", read, written, written, pass_over(model, [READ], [WRITTEN]))


def both(**choices: Any) -> ModelInputs:
    section = TransformerSection(encoder_layers=2, decoder_layers=2, **SIZES, **choices)
    return scene_of(section, transformer(section, 20, 20, 3))


def recurrent(**choices: Any) -> ModelInputs:
    section = RnnSection(d_model=12, dropout=0.0, **choices)
    return scene_of(section, rnn(section, 20, 20, 3))
