"""What the demonstration's model does without one idea of the paper, as ``regard demo --without`` measured it."""

from __future__ import annotations

from regard.inspection.folders.models import Models
from regard.inspection.folders.walk import measurements
from regard.inspection.requests import Answer, ModelRequest, question
from regard.runs.demo import NAME
from regard.system.errors import RegardError, UsageError


@question
def without(models: Models, asked: ModelRequest) -> Answer:
    """The values of :class:`~regard.runs.demo.without.Comparison`, of every idea measured so far.

    Raises:
        UsageError: nothing was measured beside this model.
        RegardError: the file is damaged.
    """
    from regard.runs.demo.without import read

    path = measurements(models.folder(asked.model).path)
    try:
        found = path and read(path)
    except RegardError as error:
        raise RegardError(f"{NAME} beside this model {error.message}; rerun regard demo --without", str(path)) from None
    if not found:
        raise UsageError("nothing was measured beside this model; rerun regard demo with --without IDEA", "model")
    return found.to_dict(), {}
