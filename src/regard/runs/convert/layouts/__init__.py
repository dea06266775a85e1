"""The formats of others: which of them the model of a recipe can be exported to, and what stands in its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.config import FAMILIES, GptSection, Recipe, TransformerSection
from regard.runs.convert.layouts import ctranslate2
from regard.runs.convert.layouts.format import PAD, TABLES, Format, Obstacle, word
from regard.runs.convert.layouts.marian import M2M100, Marian, MBart, Pegasus
from regard.runs.convert.layouts.roberta import Camembert, DistilBert, Roberta, XlmRoberta
from regard.runs.convert.layouts.single_stack import Bert, Gpt2, Vit
from regard.runs.convert.layouts.t5 import T5
from regard.system.errors import Option, UsageError
from regard.text.tokenizers.tokenizer import Tokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer, start_of

_KINDS = (Marian, Pegasus, T5, M2M100, MBart, Bert, Roberta, XlmRoberta, Camembert, DistilBert, Gpt2, Vit)
FORMATS: dict[str, Format] = {form.model_type: form() for form in _KINDS}
"""The formats of others by the word ``model_type`` of ``config.json``."""
EPSILON = 1e-5
"""The largest ε of the norms of a GPT-2 or T5 with which CTranslate2, which has one of its own, computes the same."""

TO = Option("to", "ctranslate2")
"""The cause where it is not a value of the recipe."""
SETTINGS = "the settings of docs/convert.md"
"""Where another family has to be taken, what else it needs."""
NO_FORM = {
    "decoder_cell": "no other format has its decoder, a recurrence (SSRU); it stays a model of Regard",
    "without": "no other format has a model with an idea taken out; it stays a model of Regard",
}
"""Why models with these fields set have no form anywhere."""
DECIDING = TABLES
"""The weights that matter besides the recipe."""


@dataclass(frozen=True)
class Exports:
    """Formats that a model can be exported to, and obstacles.

    Args:
        format: the nearest in Hugging Face's layout, of :data:`FORMATS`; ``None``: there is
            none for the family.
        obstacles: what the format cannot express; empty: the model can be exported.
        further: what else CTranslate2 cannot express.
        own: the symbol that starts a text has a row of its own in the table of embeddings there.
        direct: CTranslate2's layout is written without Hugging Face's.
    """

    format: str | None
    obstacles: tuple[Obstacle, ...]
    further: tuple[Obstacle, ...] = ()
    own: bool = False
    direct: bool = False

    @property
    def name(self) -> str:
        """The name of the nearest format."""
        return FORMATS[self.format].kind if self.format else "Hugging Face's layout"

    @property
    def encodes(self) -> bool:
        """Whether the nearest format is that of an encoder of texts."""
        return self.format is not None and FORMATS[self.format].family == "bert"

    @property
    def line(self) -> str:
        """The available formats; if there are none, the changes needed for the nearest format."""
        if self.obstacles and not self.obstacles[0].fits:
            return f"this model cannot be exported: {self.obstacles[0].why}"
        if self.obstacles:
            changes = ", ".join(f"{each.field} = {each.fits} instead of {word(each.value)}" for each in self.obstacles)
            more = "" if self.format else f", with {SETTINGS}"
            able = "can be exported to: CTranslate2;" if self.direct else "cannot be exported as it is:"
            return f"this model {able} {self.name} needs {changes}{more}"
        fast = "CTranslate2 (the encoder alone)" if self.encodes else "CTranslate2"
        return f"this model can be exported to: Hugging Face ({self.name})" + ("" if self.further else f", {fast}")

    def refuse(self, to: str = "huggingface") -> None:
        """Raise a UsageError that names the fields that stand in the way, if any does.

        Args:
            to: ``huggingface`` or ``ctranslate2``.
        """
        if to == "ctranslate2" and self.direct:
            return
        _refuse(self.obstacles, self.name, "; it goes out as it is with --to ctranslate2" * self.direct)
        if to == "ctranslate2":
            _refuse(self.further, "CTranslate2")


def exports(
    recipe: Recipe, tokenizer: AnyTokenizer | None = None, weights: Mapping[str, Tensor] | None = None
) -> Exports:
    """Formats that the model of a recipe can be exported to.

    Args:
        recipe: what it is made by.
        tokenizer: of the model, or of the one it begins from; ``None``: it will be one of ours.
        weights: by our names, those of :data:`DECIDING` at least; ``None``: they are still to be trained.
    """
    family = recipe.model.family
    for name, why in NO_FORM.items():
        if value := getattr(recipe.model, name, None):
            return Exports(None, (Obstacle(f"model.{name}", value, "", why),))
    obstacles = {name: each.obstacles(recipe, weights) for name, each in FORMATS.items() if each.family == family}
    if not obstacles:
        return Exports(None, tuple(_other_family(recipe)))
    for name, found in obstacles.items():
        found += FORMATS[name].odd_tokenizer(recipe, tokenizer)
    if "marian" in obstacles and tokenizer is not None and tokenizer.model is not None:
        apart = ("text.joint", "model.tie")  # a file for each side, and tables for each
        obstacles["marian"] = [each for each in obstacles["marian"] if each.field not in apart]
    nearest = min(obstacles, key=lambda name: len(obstacles[name]))  # of those that need as many changes the first
    own = recipe.model.info.encoder_decoder and not _starts_with_piece(nearest, recipe, tokenizer, weights)
    direct = not ctranslate2.obstacles(recipe, tokenizer)
    further = [] if direct else _not_for_ctranslate2(recipe, nearest, own, tokenizer)
    return Exports(nearest, tuple(obstacles[nearest]), tuple(further), own, direct)


def _other_family(recipe: Recipe) -> list[Obstacle]:
    """The obstacle of an unsupported family, and obstacles outside the model section."""
    family = recipe.model.family
    (fits,) = set(recipe.info.families) & {each.family for each in FORMATS.values()}
    why = (
        f"a model of the family {family!r} has no form in Hugging Face's layout; one of the family {fits!r} has, with "
        f"{SETTINGS}"
    )
    other = recipe.model_copy(update={"model": FAMILIES[fits]()})
    beside = [each for each in exports(other).obstacles if not each.field.startswith("model.")]
    return [Obstacle("model.family", family, fits, why), *beside]


def _starts_with_piece(
    format: str, recipe: Recipe, tokenizer: AnyTokenizer | None, weights: Mapping[str, Tensor] | None
) -> bool:
    """Whether a piece starts a text, T5's pad or M2M-100's end, so that the start symbol needs no row of its own.

    It does where the task begins with it, and where both rows are the same: where the model was not trained here.
    """
    table = (weights or {}).get(TABLES[0])
    start = FORMATS[format].start_piece(tokenizer)
    if start is None:
        return False
    prefixed = recipe.info.learns_from == "prefixed" and not recipe.text_to_text.spans
    if prefixed and tokenizer is not None and start_of(tokenizer) == PAD:
        return True
    return table is not None and torch.equal(table[-1], table[start])


def _not_for_ctranslate2(recipe: Recipe, format: str, own: bool, tokenizer: AnyTokenizer | None) -> list[Obstacle]:
    """Obstacles of CTranslate2 that Hugging Face's layout does not have."""
    model, found = recipe.model, []
    if not model.info.reads_pieces:
        found.append(Obstacle("model.family", model.family, "", "CTranslate2 knows no models of images"))
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        if format == "t5" and own:
            why = "CTranslate2 needs a name for the symbol that a text starts with, and a tokenizer of others has none"
            found.append(Obstacle(TO, "", "", why))
        if format == "gpt2" and not all(tokenizer.names):
            named = sum(map(bool, tokenizer.names))
            why = f"CTranslate2 needs a name for every piece; the tokenizer names {named:,} of {tokenizer.size:,}"
            found.append(Obstacle(TO, "", "", why))
    if isinstance(model, TransformerSection | GptSection) and format in ("gpt2", "t5") and model.norm_epsilon > EPSILON:
        found.append(Obstacle("model.norm_epsilon", model.norm_epsilon, f"{EPSILON:g} and less"))
    return found


def _refuse(obstacles: Sequence[Obstacle], kind: str, instead: str = "") -> None:
    """Raise a UsageError that names the field of the first obstacle, and after it all others.

    Args:
        obstacles: any number.
        kind: the name of the format, e.g. ``"BERT"``.
        instead: what can be done now.
    """
    if not obstacles:
        return
    first, others = obstacles[0], [f"{each.field} = {word(each.value)}, only for {each.fits}" for each in obstacles[1:]]
    why = first.why or f"{kind} has no form for {first.value!r}, only for {first.fits}"
    more = f"; nor has {kind} one for {', nor for '.join(others)}" if others else ""
    how = "" if first.why else f": train with {'these' if others else 'that'} to take a model out"
    raise UsageError(f"{why}{more}{how}{instead}", first.field)
