"""``regard pack``: the precisions in which a model may be computed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.cli.io.load_model import refuse_no_file
from regard.cli.io.terminal import result, result_json, say
from regard.system.errors import UsageError


def pack(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    source: Path | None = None,
    reference: Path | None = None,
    precision: Literal["fp32", "bf16", "int8"] | None = None,
    json: bool = False,
) -> int:
    """Measure in which precisions a translator keeps its score, and let translate and ask use the fastest of them.

    The weights stay as they are. Each precision answers the validation data, in turns; one whose BLEU is more than 0.2
    below that of fp32 is used only where it is asked for. The result lies in precisions.json beside the weights, or in
    the user's cache where the folder cannot be written, and counts for these weights alone. Speeds are those of this
    processor: on another kind, measure again. What torch computes, regard evaluate among it, stays fp32.

    Beside it lies packed.safetensors: the weights as the engine reads them, in the precision that is now used. With it
    a start takes less time and memory, and processes that use the model share it. Without it the engine packs the
    weights at every start.

    Args:
        folder: of a model of the task translation or text-to-text; with --precision of any task.
        source: sentences to measure on; default: those that its training validated on.
        reference: what they should become, line by line.
        precision: write packed weights of this one, and measure nothing.
        json: print one JSON object.
    """
    if precision:
        if source or reference:
            raise UsageError("nothing is measured with --precision; leave --source and --reference out", "--precision")
        from regard.runs.pack import pack_weights

        packed = pack_weights(folder, precision)
        if json:
            result_json({"packed": str(packed), "precision": precision})
        else:
            say(f"wrote {packed} ({packed.stat().st_size / 1e6:,.1f} MB)")
        return 0
    for path in filter(None, (source, reference)):
        refuse_no_file(path)
    from regard.runs.pack import pack as measure

    found, path = measure(folder, source, reference, say)
    if json:
        result_json({**found.model_dump(), "kept": found.kept, "file": str(path)})
    else:
        result("\n".join(found.lines()))
        say(f"wrote {path}")
    return 0
