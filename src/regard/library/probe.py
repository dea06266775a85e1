"""``regard.probe``: what passes at the named points of a model, captured or replaced while it runs.

The points are those of :mod:`regard.nn.hooks`: ``encoder.0.attention.weight``, ``decoder.2.cross.context``,
``encoder.1.feedforward.output``. They are there in every model that ``regard.load`` gives, and in your own modules made
of the parts of :mod:`regard.nn`. ::

    with regard.probe.capture(translator, ["encoder.*.attention.weight"]) as found:
        translator.translate("A man sleeps.")
    found["encoder.0.attention.weight"].tensors[0]  # head, query, key
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from torch import Tensor, nn

from regard.library.base import Model
from regard.nn import hooks
from regard.nn.alignment import Alignment
from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.embeddings import InputEmbedding, PatchEmbedding
from regard.nn.heads import Attention
from regard.nn.layers import FeedForward, Residual
from regard.nn.recurrent import Recurrent
from regard.system.errors import RegardError, UsageError

AXES: Mapping[str, tuple[str, ...]] = {
    "query": ("head", "query", "feature"),
    "key": ("head", "key", "feature"),
    "value": ("head", "key", "feature"),
    "score": ("head", "query", "key"),
    "bias": ("head", "query", "key"),
    "mask": ("query", "key"),
    "weight": ("head", "query", "key"),
    "context": ("head", "query", "feature"),
    "places": ("token",),
}
"""The axes of the tensors at a point; at the others ``token``, ``feature``."""
_PARTS: tuple[tuple[type[nn.Module], tuple[str, ...]], ...] = (
    (MultiHeadAttention, (*(point for point in hooks.INSIDE if point != "bias"), "output")),
    (Alignment, ("query", "key", "value", "score", "weight", "context", "output")),
    (Attention, ("query", "key", "value", "score", "weight", "context", "output")),
    (FeedForward, ("output",)),
    (Recurrent, ("output",)),
    (Residual, ("residual",)),
    (InputEmbedding, ("embedding", "positions")),
    (PatchEmbedding, ("embedding", "positions")),
)


@dataclass(frozen=True, eq=False, repr=False)
class Captured:
    """What passed at one point.

    Args:
        name: of the point; :attr:`part` and :attr:`layer` are read from it.
        tensors: in the order in which they passed, on the model's device: inside attention one for each sequence, at
            the other points one for each pass, its sequences end to end.
    """

    name: str
    tensors: list[Tensor] = field(default_factory=list)

    @property
    def point(self) -> str:
        """The last word of the name: ``weight``."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def part(self) -> str:
        """The path of the part: ``encoder.0.attention``."""
        return self.name.rpartition(".")[0]

    @property
    def layer(self) -> int | None:
        """Counted from 1, as the page counts; none where the part is in no layer."""
        numbered = re.search(r"(?:^|\.)(\d+)\.", self.name)
        return int(numbered[1]) + 1 if numbered else None

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of each tensor's axes."""
        return AXES.get(self.point, ("token", "feature"))

    def __repr__(self) -> str:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in self.tensors[:3])
        more = f", … ({len(self.tensors)})" if len(self.tensors) > 3 else ""
        return f"<Captured {self.name} [{', '.join(self.axes)}]: {shapes}{more}>"


def points(model: Model | nn.Module) -> list[str]:
    """The points of a model, in the order of its parts.

    Args:
        model: of ``regard.load``, or a module of your own made of the parts of ``regard.nn``.
    """
    if isinstance(model, Model):
        module = model.model  # whose parts have their names already
    elif isinstance(model, nn.Module):
        module = model
        hooks.name_parts(module)
    else:
        raise UsageError(f"expected a model or a torch module, not {type(model).__name__}", "model")
    return [f"{part.path}.{point}".removeprefix(".") for part in module.modules() for point in _points_of(part)]


@contextmanager
def capture(model: Model | nn.Module, names: str | Sequence[str]) -> Iterator[dict[str, Captured]]:
    """Keep what passes at some points while a model runs, by name; a dictionary that fills inside the ``with``.

    Attention is computed by the reference backend where something inside it is kept; the numbers are the same.

    Args:
        model: as of :func:`points`. Other models that run inside the ``with`` and have equal names are heard too.
        names: of points; ``*`` stands for anything: ``encoder.*.attention.weight``.

    Raises:
        UsageError: a name is of no point of the model; ``where`` is the name.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    _check(model, wanted)
    found: dict[str, Captured] = {}
    with _without_cache(model), hooks.capture(map(_as_heard, wanted)) as heard:
        try:
            yield found
        finally:
            found.update((name.removeprefix("."), Captured(name.removeprefix("."), heard[name])) for name in heard)


@contextmanager
def intervene(model: Model | nn.Module, name: str, function: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Replace what passes at some points by a function of it, while a model runs.

    Args:
        model: as of :func:`points`.
        name: of a point, or several by ``*``.
        function: from the tensor that passes to one of the same shape.

    Raises:
        UsageError: the name is of no point of the model; ``where`` is the name.
        RegardError: in a run, the function gave no tensor of the same shape.
    """
    _check(model, [name])

    def replace(value: Tensor) -> Tensor:
        found = function(value)
        if not isinstance(found, Tensor):
            raise RegardError(f"the function gave {type(found).__name__} instead of a tensor", name)
        if found.shape != value.shape:
            raise RegardError(f"the function gave shape {list(found.shape)} instead of {list(value.shape)}", name)
        return found

    with _without_cache(model), hooks.intervene(_as_heard(name), replace):
        yield


def _points_of(part: nn.Module) -> Iterator[str]:
    for kind, names in _PARTS:
        if isinstance(part, kind):
            yield from names
    if isinstance(part, MultiHeadAttention) and part.positions is not None:
        yield "places" if part.positions.turns else "bias"


def _without_cache(model: Model | nn.Module) -> AbstractContextManager[None]:
    """A context in which the attention of a loaded model is that of a pass, not of one that ran before."""
    explored = model._models if isinstance(model, Model) else None
    return nullcontext() if explored is None else explored.without_cache()


def _as_heard(name: str) -> str:
    """The name by which the parts tell a point; that of a module that is itself a part begins with a dot."""
    return name if "." in name or "*" in name else f".{name}"


def _check(model: Model | nn.Module, names: Sequence[str]) -> None:
    there = points(model)
    for name in names:
        if any(fnmatch.fnmatchcase(point, name) for point in there):
            continue
        like = [point for point in there if point.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]] or there
        hint = f"there are {', '.join(like[:3])}{' …' if len(like) > 3 else ''}" if like else "it has none"
        raise UsageError(f"is no point of this model; {hint} (regard.probe.points lists all)", name)
