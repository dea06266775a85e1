"""Fields of ``config.json`` and of a recipe's model section: what both can say, and sentences for what not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.config import Attentive
from regard.errors import RegardError, UsageError

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "swish",
    "swish": "swish",
}
"""Their words for activations to ours."""
THEIRS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "swish": "silu"}
"""Our words for activations to theirs."""


def number(config: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """A field of ``config.json`` that is needed.

    Raises:
        RegardError: it is missing, and there is no default.
    """
    value = config.get(name, default)
    if value is None:
        raise RegardError(f"lacks {name!r}", "config.json")
    return value


def word(config: Mapping[str, Any], name: str, known: Mapping[str, str], default: str | None = None) -> str:
    """Our word for a word of theirs.

    Raises:
        RegardError: we have none; names those there are.
    """
    theirs = str(number(config, name, default))
    if theirs not in known:
        raise RegardError(f"{name} {theirs!r} has no counterpart here; known: {', '.join(known)}", "config.json")
    return known[theirs]


def only(config: Mapping[str, Any], **expected: Any) -> None:
    """Refuse a ``config.json`` in which a field, where it stands at all, says something else than expected.

    Raises:
        RegardError: names the field.
    """
    for name, value in expected.items():
        if config.get(name, value) != value:
            raise RegardError(f"{name} = {config[name]!r} has no counterpart here, only {value!r} has", "config.json")


def demand(model: Attentive, kind: str, **expected: Any) -> None:
    """Refuse a model that the other format cannot express.

    Args:
        model: our section.
        kind: the name of the format, e.g. ``"BERT"``.
        expected: for each field the value it must have, or a tuple of those it may have.

    Raises:
        UsageError: names the field.
    """
    for name, value in expected.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if (found := getattr(model, name)) not in allowed:
            can = " or ".join(str(each) for each in allowed)
            field = {"value_size": "d_v"}.get(name, name)
            raise UsageError(
                f"{kind} has no form for {found!r}, only for {can}: train with that to take a model out",
                f"model.{field}",
            )


def demand_plain_heads(model: Attentive, kind: str) -> None:
    """Refuse heads whose sizes are not d_model / heads.

    Raises:
        UsageError: they are not.
    """
    size = model.d_model // model.heads
    if (model.key_size, model.value_size) != (size, size):
        raise UsageError(f"{kind} has heads of d_model / heads = {size} only", "model.d_k")


def dropout(config: Mapping[str, Any], name: str, default: float) -> float:
    """A probability of ``config.json``."""
    value = config.get(name, default)
    return default if value is None else float(value)
