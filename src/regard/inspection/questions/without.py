"""What the demonstration's model does without one idea of the paper, as ``regard demo --without`` measured it."""

from __future__ import annotations

from regard.inspection.folders.models import Models
from regard.inspection.folders.walk import measurements
from regard.inspection.requests import Answer, ModelRequest, question
from regard.system.errors import UsageError


@question
def without(models: Models, asked: ModelRequest) -> Answer:
    """The values of :class:`~regard.runs.demo.without.Comparison`, of every idea measured so far.

    Raises:
        UsageError: nothing was measured beside this model.
        RegardError: the file is damaged.
    """
    from regard.runs.demo.without import read

    path = measurements(models.folder(asked.model).path)
    found = path and read(path)
    if not found:
        raise UsageError("nothing was measured beside this model; rerun regard demo with --without IDEA", "model")
    return found.to_dict(), {}
