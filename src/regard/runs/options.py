"""Command options → one recipe, and the shell line of a command as a card names it.

Layers of the recipe, later ones win: size table, preset, recipe file, options, settings. A model that training is
initialised from replaces table and preset, and its tokenizer settings override everything.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from regard.config import (
    FAMILIES,
    TASKS,
    Model,
    Recipe,
    Training,
    check_value,
    merge,
    override,
    recipe_from,
    recipe_values,
)
from regard.models.presets import PRESETS, preset
from regard.runs.train_options import Inputs, listed
from regard.system.errors import Option, UsageError, option_name
from regard.tasks import job_class
from regard.tasks.protocols import Files
from regard.tasks.training.defaults import BESIDE, defaults
from regard.text.languages import UNKNOWN, language_of, primary

PLACES = (
    *("source", "target", "train", "valid", "valid_source", "valid_target", "pairs", "test_source", "test_target"),
    *("alignment", "recipe", "start_from", "output"),
)
"""Arguments that name files or folders."""


@dataclass(frozen=True)
class RecipeOptions:
    """The options that override a recipe; ``None`` leaves it unchanged."""

    recipe: Path | str | Mapping[str, object] | None = None
    preset: str | None = None
    settings: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Dotted keys, e.g. ``training.minutes``."""
    guessed: Mapping[str, str | None] = field(default_factory=dict)
    """Dotted keys guessed from the data; the recipe overrides them, as it overrides the table."""
    begun: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Sections of the pretrained model, in place of the table's; its ``text`` also replaces the recipe's."""
    earlier: Mapping[str, Any] | None = None
    """Dotted fields of the run to resume, if there is one: its family chooses the table's row, and what it was begun
    without the table does not add."""

    @cached_property
    def merged(self) -> tuple[dict[str, Any], dict[str, Any], str]:
        """The recipe given; that with options and settings laid over; and where the recipe was written."""
        if isinstance(recipe := self.recipe, Path | str):
            given, where = recipe_values(Path(recipe)), str(recipe)
        else:
            given, where = dict(recipe or {}), "recipe"
        if self.preset:
            if self.begun:  # which has its own sizes
                message = f"names the sizes of a fresh model, but {Option('start_from')} keeps those it has"
                raise UsageError(f"{message}; leave one out", Option("preset"))
            _refuse_other_task(self, given)
        if (task := self.options.get("task")) is not None:
            check_value("task", task, Option("task"))
        if given:  # a mistake in the file is reported as the file's
            recipe_from(_complete({"task": task or Recipe().task, **given}), where)
        for name, value in self.options.items():
            if value is not None:
                check_value(name, value, Option(name.rpartition(".")[2]))
        families = _families(self, given)
        for setting in self.settings:
            _check(setting, families)
        wished = override(_nest(self.options), self.settings)
        _refuse_other_text(self, wished)
        if "text" in self.begun:
            given = merge(given, {"text": self.begun["text"]})
        return given, merge(_without_length(given, wished), wished), where


def recipe_from_options(wishes: RecipeOptions, pairs: int, seems: Mapping[str, object] | None = None) -> Recipe:
    """The recipe for a corpus of n pairs or texts.

    Args:
        wishes: the options.
        pairs: their number.
        seems: dotted keys suggested by the data; a preset keeps its patch size.

    Raises:
        UsageError: an unknown key or a value that does not fit, naming where it was written.
    """
    given, chosen, where = wishes.merged
    training = chosen.get("training", {})
    task = chosen.get("task", Recipe().task)
    with_model = "model" not in given and "model" not in wishes.begun
    family = _family_option(wishes, given, chosen, task)
    earlier = wishes.earlier or {}
    resumed = with_model and not wishes.preset and earlier.get("model.family") in TASKS[task].families
    known = family or (earlier["model.family"] if resumed else None)  # the table had another one once
    model = {**chosen.get("model", {}), **({"family": known} if known else {})}
    spans = bool(chosen.get("text_to_text", {}).get("spans"))
    trained = job_class(task).training
    begun = wishes.begun.get("model") if trained.adapted else None
    start = cast("Model", FAMILIES[begun["family"]].model_validate(begun)) if begun else None
    sizes = (spans and trained.spans) or (start and trained.adapted) or trained.sizes
    table = defaults(task, sizes, pairs, wishes.preset, with_model, training, model, earlier, start)
    if family is not None and family != table.get("model", {}).get("family", family):
        table.pop("model", None)  # the sizes of another family
    same = earlier.get("model.family") == table.get("model", {}).get("family")
    if same and earlier.get("model.positions") == "sinusoidal":  # the table had them once
        table["model"]["positions"] = "sinusoidal"
    guessed = {name: value for name, value in (seems or {}).items() if name != "model.patch" or not wishes.preset}
    fitted = {"model": table["model"]} if start and "model" in table else {}
    sized = merge(table, wishes.begun, fitted, _nest({**wishes.guessed, **guessed}))
    if training.get("schedule") == "noam":
        sized["training"]["rate"] = table["training"]["rate"]  # a factor there
    tokens = sized["training"]["tokens"]
    for section, name in BESIDE:
        if wishes.earlier is not None and f"{section}.{name}" not in wishes.earlier:
            sized.get(section, {}).pop(name, None)

    tie = {name: word for name, word in wishes.begun.get("model", {}).items() if name == "tie"}

    def whole(asked: dict[str, Any]) -> dict[str, Any]:
        numbers = asked.get("classification", {}).get("kind") == "regression"  # the table's n-grams are for labels
        return merge(
            sized,
            {"classification": {"ngrams": None}} if numbers else {},
            _complete(merge({"model": tie}, asked), tokens),
        )

    try:
        found = recipe_from(whole(chosen), Option("settings") if wishes.settings else where)
    except UsageError:
        recipe_from(whole(given), where)  # a mistake of the file is reported as the file's
        raise
    return _keep_exportable(found, chosen)


def _keep_exportable(recipe: Recipe, chosen: Mapping[str, Collection[str]]) -> Recipe:
    """The recipe; without what only Regard reads beside pieces, if the model could be exported but for that.

    Args:
        recipe: of the run.
        chosen: sections with the fields that are not the table's; they stay.
    """
    unasked = [(section, name) for section, name in BESIDE if name not in chosen.get(section, ())]
    beside = [(section, name) for section, name in unasked if getattr(getattr(recipe, section), name, None)]
    if not beside:
        return recipe
    from regard.runs.convert.layouts import exports

    plain = recipe
    for section, name in beside:
        plain = plain.model_copy(update={section: getattr(plain, section).model_copy(update={name: None})})
    return recipe if exports(plain).obstacles else plain


def _family_option(wishes: RecipeOptions, given: Mapping[str, Any], chosen: Mapping[str, Any], task: str) -> str | None:
    """The family named by options, recipe or pretrained model; ``None``: any.

    Raises:
        UsageError: a preset, or the pretrained model, is of another family.
    """
    usual = TASKS[task].families[0] if "model" in given else None
    family = chosen.get("model", {}).get("family", usual)
    begun = wishes.begun.get("model", {}).get("family")
    if begun and family and begun != family:
        message = f"is a model of the family {begun}, but the one that is asked for is of the family {family}"
        raise UsageError(message, Option("start_from"))
    named = PRESETS[wishes.preset].family if wishes.preset else None
    if named and family and named != family:
        message = f"{wishes.preset} is of the family {named}, but model.family = {family!r} is asked for; leave one out"
        raise UsageError(message, Option("preset"))
    return family or begun or named


def _complete(given: dict[str, Any], tokens: int = Training().tokens) -> dict[str, Any]:
    """With what goes without saying: three-way tying needs one vocabulary, and a batch has room for any sentence."""
    text, data, model, training = (given.get(name, {}) for name in ("text", "data", "model", "training"))
    if not all(isinstance(section, Mapping) for section in (text, data, model, training)):
        return given  # it is refused for that
    if text.get("joint") is False and "tie" not in model:
        given = merge(given, {"model": {"tie": "two"}})
    longest = data.get("max_tokens")
    if isinstance(longest, int) and longest > tokens and "tokens" not in training:
        given = merge(given, {"training": {"tokens": longest}})
    return given


def task_option(wishes: RecipeOptions) -> str:
    """The task, known before the data: an option, else the recipe's, else translation.

    Raises:
        UsageError: an unknown key, or no such task.
    """
    found: str = wishes.merged[1].get("task", Recipe().task)
    check_value("task", found, Option("task"))
    return found


def _check(setting: str, families: Sequence[str | None]) -> None:
    """Raise a UsageError for a setting that is unknown, or whose value fits none of these families."""
    name = setting.partition("=")[0].strip()
    section, _, inner = name.rpartition(".")
    alone = override({}, [setting])
    value, refused = alone[section][inner] if section else alone[inner], list[UsageError]()
    for family in families:
        try:
            return check_value(name, value, Option("settings", setting), family)
        except UsageError as error:
            refused.append(error)
    raise next((error for error in refused if "Did you mean" in error.message), refused[0])


def _families(wishes: RecipeOptions, given: Mapping[str, Any]) -> Sequence[str | None]:
    """The families whose fields are valid: the recipe's, else the task's; ``None`` if unknown."""
    model = given.get("model", {})
    if isinstance(model, Mapping) and "family" in model:
        return (str(model["family"]),)
    if any(setting.partition("=")[0].strip() == "model.family" for setting in wishes.settings):
        return (None, *FAMILIES)
    task = wishes.options.get("task") or given.get("task")
    return TASKS[task].families if isinstance(task, str) and task in TASKS else (None,)


def _refuse_other_text(wishes: RecipeOptions, wished: Mapping[str, Any]) -> None:
    """Raise a UsageError for a setting that contradicts the pretrained model's tokenizer."""
    kept = wishes.begun.get("text", {})
    for name, value in wished.get("text", {}).items():
        if name in kept and value != kept[name]:
            message = f"the model of {Option('start_from')} keeps its own, {name} = {json.dumps(kept[name])}"
            raise UsageError(f"{message}; leave this setting out", Option("settings", f"text.{name}={value}"))


def _refuse_other_task(wishes: RecipeOptions, given: Mapping[str, Any]) -> None:
    """Raise a UsageError for an unknown preset, or one of a family that cannot do the task."""
    task = wishes.options.get("task") or given.get("task") or Recipe().task
    can = [name for name, one in PRESETS.items() if task not in TASKS or one.family in TASKS[task].families]
    preset(str(wishes.preset), can, Option("preset"))
    if wishes.preset not in can:
        raise UsageError(f"{wishes.preset} is not for {task}; these are: {', '.join(can)}", Option("preset"))


def _nest(dotted: Mapping[str, object]) -> dict[str, Any]:
    """Dotted keys as nested sections, without those that are ``None``."""
    found: dict[str, Any] = {}
    for name, value in dotted.items():
        section, _, inner = name.rpartition(".")
        if value is not None:
            found = merge(found, {section: {inner: value}} if section else {inner: value})
    return found


def _without_length(given: dict[str, Any], wished: Mapping[str, Any]) -> dict[str, Any]:
    """The given recipe, without its own steps and minutes if options give the length.

    Raises:
        UsageError: the options give both.
    """
    lengths = {"steps", "minutes"}
    asked = lengths & wished.get("training", {}).keys()
    if asked == lengths:
        raise UsageError("give either steps or minutes; a run has one length", Option("minutes"))
    if not asked or "training" not in given:
        return given
    return {**given, "training": {name: value for name, value in given["training"].items() if name not in lengths}}


def languages(source: Files, target: Files) -> dict[str, str | None]:
    """Language codes from the extensions of the first files; ``None`` if unknown."""
    found = {"text.source_language": source[:1], "text.target_language": target[:1]}
    codes = {name: language_of(files[0]) if files else UNKNOWN for name, files in found.items()}
    return {name: code if code != UNKNOWN else None for name, code in codes.items()}


def language_notes(wishes: RecipeOptions) -> Iterator[str]:
    """What to say of the languages of a translator: a recipe that contradicts the files, and those nobody names."""
    given, chosen, where = wishes.merged
    unknown, others = list[str](), list[tuple[str, str, str]]()
    for name, guess in wishes.guessed.items():
        key = name.rpartition(".")[2]
        written, code = (one.get("text", {}).get(key, UNKNOWN) for one in (given, chosen))
        if guess and code == written and UNKNOWN != primary(written) != primary(guess):
            others.append((f"{name} is {written}", f".{guess}", f"{Option(key, guess)}"))
        if code == UNKNOWN and not guess:
            unknown.append(f"{Option(key, 'CODE')}")
    if others:
        said, endings, instead = zip(*others, strict=True)
        files = f"as {where} says, though the files end in {' and '.join(endings)}"
        yield f"{' and '.join(said)} {files}; change it by {' '.join(instead)}"
    if unknown:
        needed = "the languages are not known; the card, the scores and long texts need them"
        yield f"{needed}: say {' '.join(unknown)} (en, de …)"


def shell_line(command: str, options: Mapping[str, object], words: Iterable[Path | str] = ()) -> str:
    """The shell line of a call, files without their folders; a recipe given as values is that of the model folder.

    Args:
        command: its name.
        options: by the names of the function's arguments; those that are ``None``, false or empty are left out.
        words: files before the options.
    """
    parts = ["regard", command, *map(name_of, words)]
    for name, given in options.items():
        option = option_name(name)
        if isinstance(given, Mapping):
            parts += [option, f"{name}.toml"] if given else []
        elif given is True:
            parts.append(option)
        elif given is not None and given is not False:
            several = [given] if isinstance(given, str | Path | int | float) else list(given)  # type: ignore[call-overload]
            for value in several:
                said = f"{value:g}" if isinstance(value, float) else str(value)
                parts += [option, name_of(said) if name in PLACES else said]
    return shlex.join(parts)


def name_of(path: Path | str) -> str:
    """The name of a file or folder, without those above it."""
    return Path(path).name or Path(os.path.abspath(path)).name


def named_files(*groups: Inputs) -> tuple[tuple[str, Path], ...]:
    """Files by their names, each once, in order."""
    paths = dict.fromkeys(Path(path) for group in groups for path in listed(group))
    return tuple((name_of(path), path) for path in paths)
