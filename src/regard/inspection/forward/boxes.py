"""The boxes of a model's own Figure 1, from the bottom up, and what enters and leaves each in one pass [Vaswani17].

They are read off the model itself: its layers, its norms before or behind a sub-layer, its tables. A parameter that
several boxes share, as a tied table, is counted once, so that all boxes together have the parameters of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regard.inspection.forward.record import ModelInputs, one_sequence

if TYPE_CHECKING:
    from torch import Tensor, nn

SUB_LAYERS = ("attention", "recurrence", "cross", "feedforward")
"""In their order within a layer."""
Key = tuple[str, int, str]
"""A stack (empty: what follows the last), a layer from 1 (0: outside of the layers), and what the box is."""


@dataclass(frozen=True)
class Box:
    """One box.

    Args:
        key: where it is, and what.
        module: what it computes by.
        owned: a part or parameter beside that; ``point``: the hook point behind it, where that is no module's output.
    """

    key: Key
    module: nn.Module
    owned: Any = None
    point: str = ""

    def parameters(self) -> dict[int, nn.Parameter]:
        """By identity."""
        found = [p for part in (self.module, self.owned) for p in _parameters(part)]
        return {id(one): one for one in found}


def _parameters(part: Any) -> Iterator[nn.Parameter]:
    from torch import nn

    if isinstance(part, nn.Parameter):
        yield part
    elif isinstance(part, nn.Module):
        yield from part.parameters()


def boxes_of(model: nn.Module, stacks: Mapping[str, str]) -> list[Box]:
    """The boxes in the order in which a vector passes them.

    Args:
        model: of any family; ``stacks``: of its section's ``info``.
    """
    made = [box for stack in dict.fromkeys(stacks.values()) for box in _of_stack(stack, getattr(model, stack))]
    head: Any = getattr(model, "head", None)
    if head is not None:
        return [*made, Box(("", 0, "head"), head)]
    output: Any = model.output
    return [*made, Box(("", 0, "output"), output, getattr(model, "output_bias", None))]


def _of_stack(name: str, stack: Any) -> Iterator[Box]:
    yield from _of_input(name, stack.input)
    if hasattr(stack, "stack"):
        yield from _of_recurrence(name, stack)
        return
    for number, layer in enumerate(stack.layers, 1):
        yield from _of_layer(name, number, layer)
    if not _is_identity(stack.final):
        yield Box((name, 0, "final"), stack.final)


def _of_input(stack: str, entering: Any) -> Iterator[Box]:
    from regard.nn.positions import NoPositions

    table = getattr(entering, "tokens", None)
    module, owned = (entering.project, entering.first) if table is None else (table, entering.words)
    yield Box((stack, 0, "embedding"), module, owned, f"{stack}.input.embedding")
    if not isinstance(entering.positions, NoPositions):
        yield Box((stack, 0, "positions"), entering.positions, point=f"{stack}.input.positions")
    if getattr(entering, "segments", None) is not None:
        yield Box((stack, 0, "segments"), entering.segments)
    if not _is_identity(getattr(entering, "norm", None)):
        yield Box((stack, 0, "embedding_norm"), entering.norm)


def _is_identity(part: nn.Module | None) -> bool:
    from torch import nn

    return part is None or isinstance(part, nn.Identity)


def _of_layer(stack: str, number: int, layer: Any) -> Iterator[Box]:
    """Norm, sub-layer and sum of pre-norm; sub-layer, and sum and norm, of post-norm."""
    from regard.models.without import NoResidual
    from regard.nn.layers import PostNorm

    for part in SUB_LAYERS:
        if not any(True for _ in _parameters(getattr(layer, part, None))):  # there is none, or it was taken out
            continue
        residual = getattr(layer, f"{part}_residual")
        box = Box((stack, number, part), getattr(layer, part))
        norm = [] if _is_identity(residual.norm) else [Box((stack, number, f"{part}_norm"), residual.norm)]
        if norm and isinstance(residual, PostNorm):
            yield from (box, *norm)
            continue
        yield from (*norm, box)
        if not isinstance(residual.dropout, NoResidual):
            yield Box((stack, number, f"{part}_add"), residual.dropout, point=f"{residual.path}.residual")


def _of_recurrence(stack: str, part: Any) -> Iterator[Box]:
    from regard.nn.alignment import Alignment

    if hasattr(part, "bridge"):
        yield Box((stack, 0, "bridge"), part.bridge)
    for number, layer in enumerate(part.stack.layers, 1):
        yield Box((stack, number, "recurrence"), layer, point=f"{layer.path}.output")
    if isinstance(getattr(part, "cross", None), Alignment):
        yield Box((stack, 0, "cross"), part.cross)


def parameter_counts(boxes: list[Box]) -> list[tuple[int, bool]]:
    """The parameters of each box, and whether a box before it has them already: all that are not shared make the model.

    Of a box that shares some, as every layer shares a table of relative positions, those of its own.
    """
    seen: set[int] = set()
    found = []
    for box in boxes:
        own = box.parameters()
        new = own.keys() - seen
        found.append((sum(own[one].numel() for one in new or own), bool(own) and not new))
        seen |= own.keys()
    return found


@dataclass
class CapturedOutputs:
    """What a module gave, and what it took, in the calls of one pass: one for each step of a recurrence that feeds."""

    entered: list[tuple[Any, ...]] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)

    def entering(self, place: int = 0) -> Tensor:
        """An argument of all calls, row under row."""
        import torch

        return torch.cat([given[place] for given in self.entered])

    def leaving(self) -> Tensor:
        """The output of all calls, row under row; of several outputs the first."""
        import torch

        return torch.cat([made[0] if isinstance(made, (tuple, list)) else made for made in self.left])


@contextmanager
def passing(modules: Mapping[str, nn.Module]) -> Iterator[dict[str, CapturedOutputs]]:
    """What enters and leaves these modules while a model runs, by their names here; none that is not called."""
    heard: dict[str, CapturedOutputs] = {}

    def listen(name: str, module: nn.Module, given: tuple[Any, ...], made: Any) -> None:
        one = heard.setdefault(name, CapturedOutputs())
        one.entered.append(given)
        one.left.append(made)

    with ExitStack() as hooks:
        for name, module in modules.items():
            handle = module.register_forward_hook(lambda *call, name=name: listen(name, *call))
            hooks.callback(handle.remove)
        yield heard


def run(seen: ModelInputs, modules: Mapping[str, nn.Module], points: list[str]) -> tuple[Tensor, dict[str, Any]]:
    """One pass in evaluation mode, its head included.

    Args:
        seen: what is read and written; ``modules``: by names of one's own; ``points``: of hooks.

    Returns:
        The hidden vectors that are looked at last; by name what the modules took and gave, and what passed the points.
    """
    import torch

    from regard.models.captured_attention import evaluating
    from regard.nn import hooks

    model: Any = seen.task.model
    with torch.inference_mode(), evaluating(model), passing(modules) as heard, hooks.capture(points) as found:
        hidden_TD = seen.run()
        if hasattr(model, "head") and "pool" not in seen.task.recipe.model.attention:  # else it ran with the pass
            model.head(hidden_TD, one_sequence(hidden_TD))
    return hidden_TD, {**heard, **{point: torch.cat(some) for point, some in found.items()}}
