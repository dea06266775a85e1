"""Reading and writing recipes: TOML with comments, validation with one-sentence errors, did-you-mean suggestions."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from regard.config.families import FAMILIES, Model
from regard.config.recipe import TASKS, Recipe
from regard.config.sections import FORMAT, Decoding, Section
from regard.system import disk
from regard.system.errors import Option, UsageError, written_by_newer

_CLASSES = "adversarial training is for classes alone now (classification.adversarial)"
_SECOND_TASK = "the demonstration alone has a second task, which regard demo trains"
LEFT: dict[str, tuple[tuple[object, ...], str]] = {
    "disambiguation.words": (([], ()), _SECOND_TASK),
    "disambiguation.weight": ((1.0,), _SECOND_TASK),
    "tagging.adversarial": ((0.0,), _CLASSES),
    "text_to_text.adversarial": ((0.0,), _CLASSES),
    "masking.span": ((3.0,), "of text-to-text the mean length of spans is text_to_text.span_length"),
}
"""Dotted key → the values that change nothing, and a sentence for people who give another one."""
LEFT_TASKS = {"span-corruption": 'learn spans by task = "text-to-text" with text_to_text.spans = true'}
"""Task → what does the same."""
REPLACED = {("training", "product", "numpy"): "auto"}
"""Section, key and value → the value that stands for it where a finished model is read."""

LIKE = 0.7
"""Minimum similarity of two words."""
PART = 0.87
"""How much alike a word and its beginning are, or a word and one of those it is made of."""

_OURS: dict[str, str] = {name: info.synonyms for name, info in TASKS.items()} | {
    "rate": "lr learning_rate",
    "tokens": "batch batch_size tokens_per_batch",
    "steps": "epoch epochs max_epochs num_epochs max_steps updates iterations",
    "minutes": "time hours",
    "vocabulary": "vocab vocab_size",
    "d_model": "hidden hidden_size dim embed_dim embedding_size n_embd width",
    "d_ff": "ff ffn ffn_dim dim_feedforward intermediate_size",
    "heads": "nhead n_heads num_heads n_head",
    "layers": "nlayers n_layers num_layers n_layer depth",
    "max_tokens": "length max_len max_length max_seq_len block_size context",
    "beam": "beam_size num_beams beams",
    "valid": "dev validation val",
    "validation": "dev valid val",
    "device": "gpu cuda",
    "threads": "workers num_workers jobs cpus",
    "recipe": "config conf cfg",
    "output": "out out_dir output_dir save save_dir model model_dir",
    "from": "init pretrained checkpoint finetune",
    "source": "src",
    "target": "tgt trg",
    "reference": "ref refs target tgt",
    "share": "rate mask_rate probability",
    "n": "num count samples",
    "top_k": "k topk",
    "top_p": "topp nucleus",
    "classify": "classification classifier label",
    "tag": "tagging tagger ner",
    "evaluate": "test score benchmark",
    "encode": "embed embedding vectors vectorise vectorize",
    "generate": "sample write complete",
    "train": "fit learn finetune fine_tune",
    "attend": "show visualise visualize heatmap",
    "help": "usage man",
}
"""Our words, each with what it is called elsewhere."""
MOST = 16
"""Keys that are named in a sentence at most."""
MOST_DOTS = 200
"""In a line of TOML; no key has as many parts."""
LARGEST = 1 << 20
"""Bytes a recipe may have; more are not read."""
_MODEL: TypeAdapter[object] = TypeAdapter(Model, config=ConfigDict(defer_build=True))
"""Of any family; it takes 8 ms to build, and is built when it is asked."""


def nearest(word: str, known: Iterable[str]) -> str:
    """``" Did you mean 'x'?"`` for the known word that was meant by ``word``, or an empty string."""
    found = did_you_mean(word, known)
    return f" Did you mean {found!r}?" if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that was meant by ``word``, if one looks like it or is called so elsewhere.

    Words of a section (``model.heads``) are searched for in that section first, else by their last part in all.

    Args:
        word: an option, a command, a key, a name ...
        known: all that there are.
    """
    every = {one: _plain(one) for one in known}
    section, _, last = _plain(word).rpartition(".")
    sections = dict.fromkeys(plain.rpartition(".")[0] for plain in every.values())
    near = _most_similar(section, {one: one for one in sections if one}, LIKE) if section else None
    within = {one: plain[len(near) + 1 :] for one, plain in every.items() if near and plain.startswith(f"{near}.")}
    parts = {one: plain.rpartition(".")[2] for one, plain in every.items()}
    return _most_similar(last, within, LIKE) or _most_similar(last, parts, PART if within else LIKE)


def _most_similar(word: str, known: dict[str, str], least: float) -> str | None:
    """The key of the value that is most like the word, or is called so elsewhere."""
    if word in known.values():
        return next(key for key, plain in known.items() if plain == word)
    for ours, elsewhere in _OURS.items():
        if word in elsewhere.split() and (found := [key for key, plain in known.items() if plain == _plain(ours)]):
            return found[0]
    best = max(known, key=lambda key: _similar(word, known[key]), default=None)
    return best if best is not None and _similar(word, known[best]) >= least else None


def _similar(word: str, known: str) -> float:
    if min(len(word), len(known)) > 1:
        if known.startswith(word) or word.startswith(f"{known}_"):
            return 1.01 * PART
        if word in known.split("_") or known in word.split("_"):
            return PART
    parts = [(1.0, known), *((PART, part) for part in known.split("_") if len(part) > 3)]
    return max(share * difflib.SequenceMatcher(None, word, part).ratio() for share, part in parts)


def _plain(word: str) -> str:
    return word.lower().lstrip("-").replace("-", "_")


def known_keys() -> list[str]:
    """Every dotted key a recipe may hold, e.g. ``model.d_model``."""
    keys: list[str] = []
    for name, field in Recipe.model_fields.items():
        kind = field.annotation
        if name == "model":
            keys += dict.fromkeys(f"{name}.{inner}" for family in FAMILIES.values() for inner in family.model_fields)
        elif isinstance(kind, type) and issubclass(kind, Section):
            keys += [f"{name}.{inner}" for inner in kind.model_fields]
        else:
            keys.append(name)
    return keys


def _there(name: str) -> str:
    """A hint for an unknown key: the keys of its section, or the sections."""
    section = name.rpartition(".")[0]
    keys = [key.rpartition(".")[2] for key in known_keys() if section and key.rpartition(".")[0] == section]
    if not keys:
        return f" There are {', '.join(Recipe.model_fields)}"
    if len(keys) > MOST:
        return f" The recipe.toml of any model has all of [{section}], each explained."
    return f" [{section}] has {', '.join(keys)}"


def without_left(values: Mapping[str, Any], where: str | None = None) -> dict[str, Any]:
    """The values of a recipe without what left.

    Args:
        values: nested, as a recipe of before has them.
        where: where they were written, if they are to be followed; else they are of a finished model, which does not
            depend on how it was trained.

    Raises:
        UsageError: a value that left is to be followed, and would change something.
    """
    found = merge(values)
    for name, (unchanged, instead) in LEFT.items():
        section, _, key = name.partition(".")
        held = found.get(section)
        if not isinstance(held, dict) or key not in held:
            continue
        if where is not None and held[key] not in unchanged:
            raise UsageError(f"{name}: {instead}; leave it out", where)
        del held[key]
        if not held:
            del found[section]
    for (section, key, before), now in REPLACED.items():
        held = found.get(section)
        if where is None and isinstance(held, dict) and held.get(key) == before:
            held[key] = now
    return found


def recipe_from(values: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """A recipe from nested plain values; one clear sentence if a key or value does not fit.

    Raises:
        UsageError: an unknown key (with the nearest known one) or a value out of its range.
    """
    if isinstance(values.get("format"), int) and values["format"] > FORMAT:
        raise UsageError(written_by_newer(values["format"], FORMAT), where)
    try:
        return Recipe.model_validate(without_left(values, where))
    except ValidationError as error:
        raise UsageError(_sentence(error.errors()[0]), where) from None


def saved_recipe(path: Path) -> Recipe:
    """The recipe of a finished model, as an earlier Regard may have written it: a T5 of spans is text-to-text.

    Raises:
        UsageError: as :func:`recipe_values` and :func:`recipe_from`.
    """
    values = recipe_values(path)
    masking = values.get("masking")
    if values.get("task") == "span-corruption" and isinstance(masking, Mapping):
        spans = {"spans": True, "span_share": masking.get("share", 0.15), "span_length": masking.get("span", 3.0)}
        values = {**values, "task": "text-to-text", "text_to_text": spans, "masking": {}}
    return recipe_from(without_left(values), str(path))


def check_value(name: str, value: object, where: str, family: str | None = None) -> None:
    """Look at one value alone, e.g. of an option, so that ``where`` is blamed for its own mistake and for no other.

    Args:
        name: its dotted key.
        value: what is given.
        where: who is to blame.
        family: the family of the model it is for, where known; default: the first that has such a field.

    Raises:
        UsageError: the field does not take it. (Whether fields fit together only :func:`recipe_from` says.)
    """
    place = tuple(name.split("."))
    try:
        if place[0] == "model" and len(place) == 2:
            fitting = [word for word, section in FAMILIES.items() if place[1] in section.model_fields]
            word = family if family in FAMILIES else fitting[0]
            _MODEL.validate_python({"family": word, place[1]: value})
        else:
            Recipe.model_validate({place[0]: {place[1]: value}} if len(place) == 2 else {name: value})
    except ValidationError as error:
        for own in error.errors():
            found = _place(own)
            if found[: len(place)] == place or (place[0] == "model" and found[:1] == place[1:]):
                said = _sentence({**own, "loc": place})
                alone = where == Option(place[-1])  # an option says itself which field it is
                raise UsageError(said.removeprefix(f"{name}: ") if alone else said, where) from None


def changed_section(section: Decoding, changes: Mapping[str, object], where: str) -> Decoding:
    """A section with other values, each of which it takes.

    Raises:
        UsageError: they do not go together.
    """
    try:
        return section.model_validate({**section.model_dump(exclude_unset=True), **changes})
    except ValidationError as error:
        raise UsageError(_sentence(error.errors()[0]), where) from None


def _place(error: ErrorDetails) -> tuple[str, ...]:
    """Location of an error, without the family that pydantic inserts between ``model`` and the field."""
    parts = tuple(str(part) for part in error["loc"])
    if parts[:1] == ("model",) and len(parts) > 1 and parts[1] in FAMILIES:
        return (parts[0], *parts[2:])
    return parts[1:] if parts and parts[0] in FAMILIES else parts


def _sentence(error: ErrorDetails) -> str:
    """One pydantic error as a sentence."""
    name = ".".join(_place(error))
    if name == "task" and isinstance(error["input"], str) and error["input"] in LEFT_TASKS:
        return f"{error['input']!r} left: {LEFT_TASKS[error['input']]}"
    if error["type"] == "union_tag_invalid":
        word = str(error.get("ctx", {}).get("tag"))
        return f"unknown model.family {word!r:.80}.{nearest(word, FAMILIES)} Known: {', '.join(FAMILIES)}"
    if error["type"] == "extra_forbidden":
        inner = name.rpartition(".")[2]
        owners = [word for word, section in FAMILIES.items() if inner in section.model_fields]
        if name.startswith("model.") and owners:
            family = next((str(part) for part in error["loc"] if part in FAMILIES), "")
            have = f"{', '.join(owners)} {'has' if len(owners) == 1 else 'have'}"
            own = nearest(inner, FAMILIES[family].model_fields) if family in FAMILIES else ""
            this = f'the family "{family}"' if family else "this family"
            return f"{name}: {this} has no such field; {have}.{own}"
        known = [*known_keys(), *(part for part in Recipe.model_fields if part not in known_keys())]
        return f"unknown key {name!r}.{nearest(name, known) or _there(name)}"
    if error["type"] in ("model_type", "model_attributes_type", "union_tag_not_found"):
        return f"{name} is a group of fields, written [{name}] with a line for each; it has no value of its own"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        known = re.findall("'([^']*)'", message)
        message = f"{error['input']!r:.80} is not known.{nearest(error['input'], known)} Known: {', '.join(known)}"
        return f"{name}: {message}" if name else message
    try:
        found = "" if isinstance(error["input"], Mapping) else f" (got {error['input']!r:.80})"
    except ValueError:  # more digits than Python writes
        found = " (got a number of thousands of digits)"
    return f"{name}: {message}{found}" if name else message


def recipe_values(path: Path) -> dict[str, Any]:
    """The nested plain values of a TOML file.

    Raises:
        UsageError: the file is missing, no plain file, too large, not UTF-8 or not TOML (with the line).
    """
    raw = disk.content(path, LARGEST, "recipe file", UsageError)
    try:
        return toml_values(raw.decode("utf-8"))
    except ValueError as error:
        raise UsageError(f"cannot be read as TOML: {error}", str(path)) from None


def toml_values(text: str) -> dict[str, Any]:
    """The nested plain values of TOML.

    Raises:
        ValueError: it is not TOML, or holds an invalid date, or a whole number of more than 64 bits.
    """
    if any(line.count(".") > MOST_DOTS and not line.startswith("#") for line in text.split("\n")):
        raise ValueError(f"a line has more than {MOST_DOTS} dots")  # reading a key of n parts takes n² steps
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError("brackets within brackets without end") from None
    waiting: list[object] = [values]
    while waiting:
        one = waiting.pop()
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if isinstance(one, int) and one.bit_length() > 63:  # Python could read such a number, but not write it
            raise ValueError("a whole number has more than 64 bits")
    return values


def override(values: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """``values`` with ``section.key=value`` settings laid over; a value is TOML, or else a bare string."""
    result = merge(values)
    for setting in settings:
        name, equals, text = setting.partition("=")
        name, text = name.strip(), text.strip()
        if name in Recipe.model_fields and name not in known_keys():
            wanted = Option("settings", f"{name}.KEY=VALUE")
            raise UsageError(f"{name} is a group of fields; write {wanted}.{_there(name + '.')}", Option("settings"))
        if name in LEFT:
            raise UsageError(f"{name}: {LEFT[name][1]}; leave it out", Option("settings"))
        if not equals or name not in known_keys():
            hint = nearest(name, known_keys()) or _there(name) if equals else f" Say {Option('settings', 'KEY=VALUE')}."
            raise UsageError(f"unknown key {name!r}.{hint}", Option("settings"))
        try:
            value = toml_values(f"value = {text}")["value"]
        except ValueError:
            value = text
        section, _, inner = name.rpartition(".")
        if section:
            result[section] = {**result.get(section, {}), inner: value}
        else:
            result[inner] = value
    return result


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested values with later layers laid over earlier ones, section by section."""
    result: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            result[name] = {**result.get(name, {}), **value} if isinstance(value, Mapping) else value
    return result


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


def dump_toml(values: Mapping[str, object]) -> str:
    """Plain nested values as TOML text; absent (``None``) values are left out."""
    lines = [f"{k} = {_toml(v)}" for k, v in values.items() if v is not None and not isinstance(v, Mapping)]
    for name, section in values.items():
        if isinstance(section, Mapping):
            lines += ["", f"[{name}]"] + [f"{k} = {_toml(v)}" for k, v in section.items() if v is not None]
    return "\n".join(lines) + "\n"


def recipe_toml(recipe: Recipe) -> str:
    """A recipe as TOML text, complete, with what each field is and what can be chosen as comments."""
    lines = _field_lines(recipe)
    for name in Recipe.model_fields:
        section = getattr(recipe, name)
        if name in recipe.sections and isinstance(section, Section):
            lines += ["", f"# {(section.__doc__ or name).splitlines()[0]}", f"[{name}]", *_field_lines(section)]
    return "\n".join(lines) + "\n"


def _field_lines(section: Section) -> list[str]:
    """A line for each plain field; one that is not set is a comment only."""
    lines = []
    fields = type(section).model_fields
    for name, field in sorted(fields.items(), key=lambda entry: entry[0] != "family"):
        value, said = getattr(section, name), field.description or ""
        if isinstance(value, Section):
            continue
        if len(choices := _words(field.annotation)) > 1:
            said = f"{' | '.join(choices)}; {said}"
        lines.append(f"{name} = {_toml(value)}  # {said}" if value is not None else f"# {name} is not set: {said}")
    return lines


def _words(annotation: object) -> list[str]:
    """The words a field can be, where it is a choice between words (or nothing)."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    return [word for part in get_args(annotation) for word in _words(part)]
