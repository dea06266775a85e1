"""``regard average``: the mean of several checkpoints' weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.system.errors import UsageError


def average(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    output: Path | None = None,
    last: int | None = None,
    checkpoints: Annotated[list[Path] | None, Parameter(consume_multiple=True)] = None,
) -> int:
    """Average the weights of a run's checkpoints into a new model folder.

    The paper did so with its last five (base) or twenty (big).

    Args:
        folder: the model folder of the run.
        output: the model folder to make; always needed.
        last: number of newest checkpoints to average; default: all that are kept.
        checkpoints: take these checkpoint folders.
    """
    if output is None:
        raise UsageError("say where the averaged model goes: --output DIR")
    if last is not None and checkpoints:
        raise UsageError("give --last or --checkpoints, not both")
    from regard.cli.io.terminal import result
    from regard.runs import average as averaging

    averaging.average(folder, output, last, checkpoints or ())
    result(f"The averaged model is in {output}.")
    return 0
