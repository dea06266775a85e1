"""``resolved.toml``: every field of a run and its measured settings; a resumed run must match them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from regard.config import LEFT, Recipe, checksum, nearest
from regard.system import disk
from regard.system.errors import Damaged, Option, RegardError, UsageError
from regard.training.checkpoints.checkpoint import verified_state, whole
from regard.training.checkpoints.files import Files

NAME = "resolved.toml"

Plain = str | int | float | bool | tuple[object, ...] | None
Fields = Mapping[str, Plain]
"""Dotted names to plain values: ``training.rate``, ``chosen.steps``, ``fingerprint.data``.

``chosen`` is what was measured or looked up at the first start: steps, validate_every, tokens, accumulate, product and
exact (the paths of matrix products while training and while validating), measured (what they were chosen by),
threads. Of a ``--minutes`` run also
costs (``budget.Costs``), select (if there is no time for the recipe's own), and after re-planning at half-time
planned (the first number of steps) and reviewed (the step of re-planning).
``fingerprint`` is data, tokenizer, torch, processor and the instruction set of the kernels.
"""

ALLOWED = frozenset(
    """
    training.steps training.rate training.schedule training.warmup training.clip training.label_smoothing
    training.beta1 training.beta2 training.epsilon training.weight_decay training.select training.patience
    training.validate_every training.validation_sentences
    model.dropout model.attention_dropout model.feedforward_dropout text.source_language text.target_language
    chosen.threads fingerprint.torch fingerprint.processor fingerprint.kernels
    """.split()
)
"""Fields that may differ if ``--allow-mismatch`` names them. A run with other data, vocabularies,
sizes, batches or another seed is another run. (``decoding`` may always differ.)"""

_FREE = {"training.keep", "training.save_every", "training.max_skipped", "training.product"}
"""May change from one start to the next: they do not change the weights; ``chosen.product`` says what was chosen."""
_WARN = {"fingerprint.torch", "fingerprint.kernels"}


def recipe_fields(recipe: Recipe) -> dict[str, Plain]:
    """Every field of a recipe that decides the weights, by its dotted name; minutes decide nothing beside steps."""
    fields: dict[str, Plain] = {"recipe.task": recipe.task, "recipe.seed": recipe.seed}
    for section in (name for name in recipe.sections if name != "decoding"):
        for name, value in getattr(recipe, section).deciding().items():
            if f"{section}.{name}" not in _FREE:
                fields[f"{section}.{name}"] = value
    if recipe.training.steps is not None:
        del fields["training.minutes"]
    return fields


def write(folder: Path, fields: Fields, files: Files) -> None:
    """Replace ``resolved.toml`` in the private ``training/`` folder; nothing where it is the same already."""
    nested: dict[str, dict[str, object]] = {}
    for name, value in fields.items():
        section, _, inner = name.partition(".")
        nested.setdefault(section, {})[inner] = value
    raw, path = checksum.dump_sealed_toml(nested), folder / NAME
    if not disk.holds(path, raw):
        files.replace(path, [raw])


def read_fields(folder: Path) -> dict[str, Plain]:
    """The fields that :func:`write` wrote; files of older versions have no sha256 and are read as they are.

    Raises:
        Damaged: it cannot be read, or differs from what was written.
        RegardError: a newer Regard wrote it.
    """
    path = folder / NAME
    values = checksum.load_toml(disk.content(path, error=Damaged), path)
    tables = {section: table for section, table in values.items() if isinstance(table, dict)}
    if not tables:
        raise Damaged("is damaged: it is empty", str(path))
    return {f"{section}.{inner}": _plain(value) for section, table in tables.items() for inner, value in table.items()}


def known_fields(folder: Path) -> tuple[dict[str, Plain], Path | None]:
    """The fields of a run, and the checkpoint they come from if ``resolved.toml`` is lost or damaged.

    There are no fields where no run has begun, and where one lost them before its first checkpoint: nothing else is
    lost then.

    Raises:
        Damaged: there are checkpoints, but no valid one has the fields.
    """
    checkpoints = whole(folder / "checkpoints")
    if not (folder / NAME).exists() and not checkpoints:
        return {}, None
    try:
        return read_fields(folder), None
    except Damaged as damage:
        for path in reversed(checkpoints):
            with suppress(Damaged):
                found = verified_state(path).get("resolved")
                if isinstance(found, dict) and found:
                    return {name: _plain(value) for name, value in found.items()}, path
        if not any((folder / "checkpoints").glob("step-*")):
            return {}, None
        advice = f"start again with {Option('resume', 'never')} (nothing is deleted)"
        raise Damaged(f"{damage.message}, and no valid checkpoint has its fields; {advice}", damage.where) from None


def refuse_others(allow: Iterable[str]) -> None:
    """Raise a UsageError for a field that ``--allow-mismatch`` cannot be given."""
    for name in allow:
        if name not in ALLOWED:
            others = nearest(name, ALLOWED) or f" These can: {', '.join(sorted(ALLOWED))}."
            raise UsageError(f"a run cannot resume with another {name!r}.{others}", Option("allow_mismatch"))


def check(old: Fields, new: Fields, allow: Iterable[str] = (), warn: Callable[[str], None] = lambda text: None) -> None:
    """Refuse to resume a run with other fields.

    Args:
        old: the fields of the run's ``resolved.toml``.
        new: the fields of this command and machine; any part of them.
        allow: names of fields that may differ (``--allow-mismatch``).
        warn: called with each allowed difference.

    Raises:
        RegardError: the first field that differs, or one that left; ``where`` is its name.
    """
    for name, (unchanged, instead) in LEFT.items():
        if name in old and name not in new and old[name] not in unchanged:
            said = f"this run has {_value_text(old[name])}, but {instead}"
            raise RegardError(f"{said}; choose another {Option('output')}", name)
    allow = ALLOWED & set(allow)
    for name, value in new.items():
        before, now = old.get(name), _plain(value)
        if before == now:
            continue
        said = f"this run has {_value_text(before)}, now it is {_value_text(now)}"
        if name not in _WARN and name not in allow:
            others = f", or resume with {Option('allow_mismatch', [name])}" if name in ALLOWED else ""
            raise RegardError(f"{said}; choose another {Option('output')}{others}", name)
        warn(f"{name}: {said}")


def _plain(value: object) -> Plain:
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


def _value_text(value: Plain) -> str:
    return "not set" if value is None else repr(value)
