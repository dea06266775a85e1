"""Registry of model formats by ``model_type`` of ``config.json``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.config import Recipe
from regard.convert.config_fields import Fields
from regard.convert.layouts import bert, gpt2, t5, translator, vit
from regard.convert.layouts.names import Row
from regard.convert.obstacles import Obstacle
from regard.system.errors import RegardError

NONE = re.compile(r"(?!)")
"""No name at all."""


@dataclass(frozen=True)
class Format:
    """One family of models as others write it.

    Args:
        kind: its name in sentences.
        tasks: their architectures to our tasks, the usual one first.
        section: ``config.json`` and the tensors → values of our model section.
        config: a recipe, and the rows of its table of embeddings → the fields of their ``config.json``.
        rows: our section and the task → the table of names.
        obstacles: a recipe, and the weights if there are any yet → the values that it has no form for.
        prefix: begins the names of tensors, which the file of a bare model leaves out.
        heads: beginnings of names that have no such prefix.
        silent: names of tensors that say nothing here.
        spare: names of tensors that may be there without being needed.
        copies: tied tensors that a file may hold a second time, to the first.
        own: those of them that may also be tensors of their own.
        outputs: by task the copy that is the matrix before the softmax; an untied model must hold it.
        old: parts of names as the first releases wrote them, to today's.
        row_options: ``config.json`` and ``generation_config.json`` → keyword arguments of ``rows``; ``own``
            where the last row of the table of embeddings is no piece's, but that of the symbol that starts a text.
        further: our section and their ``config.json`` → tensors that are no weights of ours.
    """

    kind: str
    tasks: Mapping[str, str]
    section: Callable[[Fields, Mapping[str, Any]], dict[str, Any]]
    config: Callable[[Recipe, int], dict[str, Any]]
    rows: Callable[..., list[Row]]
    obstacles: Callable[[Recipe, Mapping[str, Tensor] | None], list[Obstacle]]
    prefix: str = ""
    heads: tuple[str, ...] = ()
    silent: re.Pattern[str] = NONE
    spare: re.Pattern[str] = NONE
    copies: Mapping[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    old: Mapping[str, str] = field(default_factory=dict)
    row_options: Callable[[Fields, Fields], dict[str, Any]] = lambda config, generation: {}
    further: Callable[[Any, Mapping[str, Any]], dict[str, Tensor]] = lambda model, config: {}

    def current_name(self, name: str) -> str:
        """A tensor's name as the table has it."""
        for old, new in self.old.items():
            name = name.replace(old, new)
        return name if name.startswith((self.prefix, *self.heads)) else self.prefix + name

    def canonical_tensors(
        self, tensors: Mapping[str, Tensor], where: str, untied: str | None = None
    ) -> dict[str, Tensor]:
        """The tensors under current names, without unused buffers and copies.

        Args:
            tensors: by the names of the file.
            where: the file.
            untied: a tensor declared not to be a copy; kept if the format supports it.

        Raises:
            RegardError: a copy differs from its original, or an untied tensor is missing.
        """
        named = {self.current_name(name): tensor for name, tensor in tensors.items()}
        if untied is not None and untied not in named:
            raise RegardError(f"lacks {untied!r}, which its config.json says is a matrix of its own", where)
        found = {name: tensor for name, tensor in named.items() if not self.silent.fullmatch(name)}
        for copy, first in self.copies.items():
            if copy not in found or (copy == untied and copy in self.own):
                continue
            if first not in found:
                found[first] = found.pop(copy)
            elif torch.equal(found[copy], found[first]):
                del found[copy]
            elif copy not in self.own:
                raise RegardError(f"has {copy!r} that differs from {first!r}; here they are one", where)
        return found


def _translator(kind: str, name: str) -> Format:
    return Format(
        name,
        translator.TASKS[kind],
        translator.section,
        translator.config,
        translator.rows,
        lambda recipe, _: translator.obstacles(recipe, kind),
        spare=translator.SPARE,
        copies=translator.COPIES,
        row_options=translator.row_options,
        further=translator.further,
    )


FORMATS: dict[str, Format] = {
    "bert": Format(
        "BERT",
        bert.TASKS,
        bert.section,
        bert.config,
        bert.rows,
        lambda recipe, _: bert.obstacles(recipe),
        "bert.",
        ("cls.", "classifier."),
        bert.SILENT,
        bert.SPARE,
        bert.COPIES,
        outputs={"masked-lm": "cls.predictions.decoder.weight"},
        old=bert.OLD,
    ),
    "gpt2": Format(
        "GPT-2",
        gpt2.TASKS,
        gpt2.section,
        gpt2.config,
        gpt2.rows,
        lambda recipe, _: gpt2.obstacles(recipe),
        "transformer.",
        ("lm_head.",),
        gpt2.SILENT,
        copies=gpt2.COPIES,
        outputs={"language-model": "lm_head.weight"},
    ),
    "marian": _translator("marian", "Marian"),
    "pegasus": _translator("pegasus", "Pegasus"),
    "t5": Format(
        "T5",
        t5.TASKS,
        t5.section,
        t5.config,
        t5.rows,
        t5.obstacles,
        silent=t5.SILENT,
        copies=t5.COPIES,
        own=("lm_head.weight",),
        outputs={"span-corruption": "lm_head.weight"},
        row_options=t5.row_options,
    ),
    "vit": Format(
        "ViT",
        vit.TASKS,
        vit.section,
        vit.config,
        vit.rows,
        lambda recipe, _: vit.obstacles(recipe),
        "vit.",
        ("classifier.",),
        vit.SILENT,
    ),
}
"""Their word ``model_type`` to the format."""
