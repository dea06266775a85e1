"""Base class of recipe sections: frozen, plain values, unknown fields refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

FORMAT = 1
"""Version of every file we write; a newer one is refused with a sentence."""
Uses = dict[str, tuple[int, int]]
"""Encoder, decoder, cross [Vaswani17 §3.2.3] or pool, the uses of attention, to how many layers and heads."""


class Section(BaseModel):
    """A frozen group of recipe fields; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, values: Any) -> Any:
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, bool) and name in cls.model_fields and cls.model_fields[name].annotation is not bool:
                raise ValueError(f"{name} is no question of true or false")
        return values
