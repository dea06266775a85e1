"""Options by which commands draw texts from a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import Group, Parameter

DRAWING = Group("Drawing", sort_key=1)
Number = Annotated[float | None, Parameter(group=DRAWING)]
Whole = Annotated[int | None, Parameter(group=DRAWING)]


@Parameter(name="*")
@dataclass(frozen=True)
class SamplingOptions:
    """The options of every command that draws texts.

    Args:
        temperature: 1 samples from the model, less is safer, 0 takes the most probable token every time.
        top_k: sample from this many tokens, the most probable ones.
        top_p: sample from the fewest tokens whose total probability reaches this.
        min_p: sample from tokens with at least this share of the most probable one's probability.
        typical: sample from the tokens closest to the expected surprisal, up to this total probability.
        repetition_penalty: penalise tokens that occurred before; 1 does nothing.
    """

    temperature: Number = None
    top_k: Whole = None
    top_p: Number = None
    min_p: Number = None
    typical: Number = None
    repetition_penalty: Number = None

    @property
    def values(self) -> dict[str, float | None]:
        """The options by name, ``None`` where not given.

        Raises:
            UsageError: a value does not fit.
        """
        from regard.config import check_value

        found = asdict(self)
        for name, value in found.items():
            if value is not None:
                check_value(f"decoding.{name}", value, "--" + name.replace("_", "-"))
        return found


NO_SAMPLING = SamplingOptions()
