"""The whole recipe as frozen sections: plain values, no behaviour, no torch.

A recipe is a TOML file. Every field has a default that works, a unit and a reason; an unknown key is answered with the
nearest known one. Recipes hold no paths: data comes from the command line.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from regard.errors import UsageError

FORMAT = 1
"""Version of every file we write; a newer one is refused with a sentence."""


LARGEST = 1 << 20
"""Bytes a recipe may have; more are not read."""


LANGUAGE = r"^[A-Za-z0-9_.@-]{1,40}$"
"""What a language code may look like; it is shown, and may become part of a file's name."""


class Section(BaseModel):
    """A frozen group of recipe fields; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, values: Any) -> Any:
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, bool) and name in cls.model_fields and cls.model_fields[name].annotation is not bool:
                raise ValueError(f"{name} is no question of true or false")
        return values


class Text(Section):
    """How text becomes ids [Sennrich16]: byte-level BPE, lossless."""

    vocabulary: int = Field(8000, ge=300, le=1_000_000, description="pieces, the symbols included")
    joint: bool = Field(True, description="one vocabulary for both languages (needed for three-way tying)")
    normalisation: Literal["none", "nfc", "nfkc"] = Field("nfc", description="Unicode normalisation before encoding")
    sample: int = Field(1_000_000, ge=1, description="pairs drawn (seeded) to learn the vocabulary from")
    bpe_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="probability of leaving a merge out while training")
    segmentations: int = Field(16, ge=1, le=64, description="segmentations drawn per distinct word for BPE-dropout")
    source_language: str = Field("und", pattern=LANGUAGE, description="language code of the source; und = unknown")
    target_language: str = Field("und", pattern=LANGUAGE, description="language code of the target; und = unknown")


class Data(Section):
    """What is learned from, and how batches are packed."""

    max_tokens: int = Field(256, ge=2, description="pairs longer than this on a side are left out, counted and named")
    validation: int = Field(
        1000, ge=1, description="pairs split off (seeded), at most a tenth, when no validation files are given"
    )
    weights: tuple[float, ...] = Field((), description="one weight per corpus; empty = by size")
    epoch: int = Field(0, ge=0, description="draws of a virtual epoch of weighted corpora; 0 = all pairs")
    look_ahead: int = Field(
        64, ge=1, le=1_000_000, description="sentences waiting to fill the gap at the end of a batch"
    )


class Model(Section):
    """The Transformer [Vaswani17 §3]; the defaults are the paper's base model."""

    family: Literal["transformer"] = Field("transformer", description="the architecture")
    encoder_layers: int = Field(6, ge=1, le=256, description="layers that read")
    decoder_layers: int = Field(6, ge=1, le=256, description="layers that write")
    d_model: int = Field(512, ge=1, le=65536, description="size of every hidden vector")
    d_ff: int = Field(2048, ge=1, le=262144, description="inner size of the feed-forward")
    heads: int = Field(8, ge=1, le=1024, description="attention heads of a layer")
    d_k: int | None = Field(None, ge=1, le=65536, description="query and key size per head; default d_model / heads")
    d_v: int | None = Field(None, ge=1, le=65536, description="value size per head; default d_model / heads")
    norm: Literal["layer", "rms"] = Field("layer", description="layer: the paper's; rms: without mean and bias")
    norm_place: Literal["post", "pre"] = Field("post", description="post: the paper; pre: trains without long warm-up")
    activation: Literal["relu", "gelu"] = Field("relu", description="inside the feed-forward")
    positions: Literal["sinusoidal", "learned", "none"] = Field(
        "sinusoidal", description="how a token's place is told; none: not at all"
    )
    max_positions: int = Field(512, ge=1, le=10_000_000, description="learned positions: the longest sequence")
    tie: Literal["none", "two", "three"] = Field(
        "three", description="two: target embedding = output; three: source embedding too (needs a joint vocabulary)"
    )
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="on sub-layer outputs and embeddings")
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="on attention weights; the paper has none")
    feedforward_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="inside the feed-forward; the paper has none")

    @model_validator(mode="after")
    def _heads_divide(self) -> Model:
        if (self.d_k is None or self.d_v is None) and self.d_model % self.heads:
            raise ValueError(f"d_model {self.d_model} is not divisible by heads {self.heads}; set d_k and d_v")
        return self

    @property
    def key_size(self) -> int:
        """d_k: query and key size per head."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_size(self) -> int:
        """d_v: value size per head."""
        return self.d_v or self.d_model // self.heads


class Training(Section):
    """How weights are made [Vaswani17 §5]."""

    steps: int | None = Field(None, ge=1, description="updates; default: from --minutes, else a table by corpus size")
    minutes: float | None = Field(None, gt=0, description="wall minutes from first step to saved model; fixes steps")
    tokens: int = Field(1024, ge=16, description="target tokens of a packed batch; 1,024 suits small corpora")
    accumulate: int = Field(1, ge=1, le=100_000, description="batches per update")
    optimiser: Literal["adam", "adamw"] = Field("adam", description="adamw: weight decay apart from the gradient")
    beta1: float = Field(0.9, ge=0.0, lt=1.0, description="decay of the mean of gradients")
    beta2: float = Field(0.98, ge=0.0, lt=1.0, description="decay of the mean of squared gradients")
    epsilon: float = Field(1e-9, gt=0.0, description="added to the root of that")
    weight_decay: float = Field(0.0, ge=0.0, description="of weights, not of biases and norms; adamw only")
    schedule: Literal["noam", "inverse_square_root", "cosine", "linear"] = Field(
        "cosine", description="how the rate falls behind the warm-up"
    )
    rate: float = Field(2e-3, gt=0.0, description="peak rate; for noam a factor of the paper's formula")
    warmup: int = Field(
        400, ge=0, description="steps of linear warm-up; never more than a tenth of the steps if they are known"
    )
    clip: float = Field(1.0, ge=0.0, description="largest gradient norm; 0 = no clipping")
    label_smoothing: float = Field(0.1, ge=0.0, lt=1.0, description="probability given to all other pieces")
    precision: Literal["auto", "fp32", "mixed"] = Field(
        "auto",
        description="mixed: products in bf16, weights and residual stream in fp32; auto: mixed where bf16 is native",
    )
    ema: float = Field(0.0, ge=0.0, lt=1.0, description="decay of averaged weights; 0 = off; validated and saved if on")
    validate_every: int | None = Field(None, ge=1, description="steps; default: a twentieth of the run")
    save_every: int | None = Field(None, ge=1, description="steps; default: with each validation")
    keep: int = Field(3, ge=2, description="newest checkpoints kept")
    select: Literal["auto", "loss", "bleu", "chrf"] = Field(
        "auto", description="what is best; auto: loss in the first half, then greedy BLEU"
    )
    patience: int | None = Field(
        None, ge=1, description="validations without a better one; only noam and inverse_square_root"
    )
    validation_sentences: int = Field(500, ge=1, description="sentences translated (greedily) at a validation")
    max_skipped: int = Field(
        10,
        ge=1,
        description="non-finite updates in a row before training stops; more than 10 within 1,000 steps stop it too",
    )


class Decoding(Section):
    """How text is made [Vaswani17 §6.1]."""

    beam: int = Field(5, ge=1, le=100, description="hypotheses kept; 1 is greedy")
    length_penalty: float = Field(0.6, ge=0.0, le=10.0, description="alpha of ((5 + length) / 6) ** alpha [Wu16]")
    max_extra: int = Field(50, ge=1, le=10_000, description="an output is at most the source + this many tokens")
    tokens: int = Field(8192, ge=16, description="source tokens times beam decoded at once")


class Recipe(Section):
    """Everything that decides a run, but the data."""

    format: Literal[1] = Field(1, description="version of this file")
    task: Literal["translation"] = Field("translation", description="what the model is for")
    seed: int = Field(1, ge=0, description="of every random choice")
    text: Text = Text()
    data: Data = Data()
    model: Model = Model()
    training: Training = Training()
    decoding: Decoding = Decoding()

    @model_validator(mode="after")
    def _fits(self) -> Recipe:
        if self.model.tie == "three" and not self.text.joint:
            raise ValueError('model.tie = "three" needs text.joint = true; use "two" with separate vocabularies')
        if self.data.max_tokens > self.training.tokens:
            raise ValueError(f"data.max_tokens {self.data.max_tokens} is above training.tokens {self.training.tokens}")
        if (
            self.model.positions == "learned"
            and self.model.max_positions < self.data.max_tokens + self.decoding.max_extra + 1
        ):
            raise ValueError(
                f"model.max_positions {self.model.max_positions} is below data.max_tokens + decoding.max_extra + 1 = "
                f"{self.data.max_tokens + self.decoding.max_extra + 1}"
            )
        if self.training.patience is not None and self.training.schedule in ("cosine", "linear"):
            raise ValueError("training.patience acts only on schedules without an end (noam, inverse_square_root)")
        if self.training.weight_decay and self.training.optimiser == "adam":
            raise ValueError('training.weight_decay acts only with training.optimiser = "adamw"')
        return self


def known_keys() -> list[str]:
    """Every dotted key a recipe may hold, e.g. ``model.d_model``."""
    keys: list[str] = []
    for name, field in Recipe.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            keys += [f"{name}.{inner}" for inner in kind.model_fields]
        else:
            keys.append(name)
    return keys


def nearest(word: str, known: Iterable[str]) -> str:
    """``" Did you mean 'x'?"`` for the known word nearest to ``word``, or an empty string."""
    known = list(known)
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if not match:  # a key named without its section: d_model for model.d_model
        match = [k for k in known if k.rpartition(".")[2] == word.rpartition(".")[2]][:1]
    return f" Did you mean {match[0]!r}?" if match else ""


def recipe_from(values: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """A recipe from nested plain values; one clear sentence if a key or value does not fit.

    Raises:
        UsageError: an unknown key (with the nearest known one) or a value out of its range.
    """
    if isinstance(values.get("format"), int) and values["format"] > FORMAT:
        raise UsageError(
            f"format {values['format']} was written by a newer Regard; this one reads format {FORMAT}", where
        )
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise UsageError(_sentence(error.errors()[0]), where) from None


def check_value(name: str, value: object, where: str) -> None:
    """Look at one value alone, e.g. of an option, so that ``where`` is blamed for its own mistake and for no other.

    Raises:
        UsageError: the field does not take it. (Whether fields fit together only :func:`recipe_from` says.)
    """
    place = tuple(name.split("."))
    try:
        Recipe.model_validate({place[0]: {place[1]: value}} if len(place) == 2 else {name: value})
    except ValidationError as error:
        for own in error.errors():
            if own["loc"][: len(place)] == place:
                raise UsageError(_sentence(own), where) from None


def _sentence(error: ErrorDetails) -> str:
    """What one error of pydantic's means."""
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        known = [*known_keys(), *(part for part in Recipe.model_fields if part not in known_keys())]
        return f"unknown key {name!r}.{nearest(name, known)}"
    if error["type"] == "model_type":
        return f"{name} is a group of fields, written [{name}] with a line for each; it has no value of its own"
    message = error["msg"].removeprefix("Value error, ")
    found = "" if isinstance(error["input"], Mapping) else f" (got {error['input']!r:.80})"
    return f"{name}: {message}{found}" if name else message


def recipe_values(path: Path) -> dict[str, Any]:
    """The nested plain values of a TOML file.

    Raises:
        UsageError: the file is missing, no plain file, too large, not UTF-8 or not TOML (with the line).
    """
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or a device"
        raise UsageError(f"is {what}; a recipe is a file", str(path))  # opening a pipe waits for a writer
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise UsageError("is larger than 1 MB: this is not a recipe", str(path))
        return tomllib.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise UsageError("no such recipe file", str(path)) from None
    except RecursionError:
        raise UsageError("cannot be read as TOML: brackets within brackets without end", str(path)) from None
    except (OSError, ValueError) as error:  # the latter of UTF-8, TOML, or a date that is none
        raise UsageError(f"cannot be read as TOML: {error}", str(path)) from None


def override(values: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """``values`` with ``section.key=value`` settings laid over; a value is TOML, or else a bare string."""
    result: dict[str, Any] = {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name, text = name.strip(), text.strip()
        if not equals or name not in known_keys():
            hint = nearest(name, known_keys()) if equals else " Write --set section.key=value."
            raise UsageError(f"unknown key {name!r}.{hint}", "--set")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
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


def dump_toml(values: Mapping[str, Any]) -> str:
    """Plain nested values as TOML text; absent (``None``) values are left out."""
    lines = [f"{k} = {_toml(v)}" for k, v in values.items() if v is not None and not isinstance(v, Mapping)]
    for name, section in values.items():
        if isinstance(section, Mapping):
            lines += ["", f"[{name}]"] + [f"{k} = {_toml(v)}" for k, v in section.items() if v is not None]
    return "\n".join(lines) + "\n"


def recipe_toml(recipe: Recipe) -> str:
    """A recipe as TOML text, complete, with what each field is and what can be chosen as comments."""
    lines = _commented(recipe)
    for name in Recipe.model_fields:
        section = getattr(recipe, name)
        if isinstance(section, Section):
            lines += ["", f"# {(section.__doc__ or name).splitlines()[0]}", f"[{name}]", *_commented(section)]
    return "\n".join(lines) + "\n"


def _commented(section: Section) -> list[str]:
    """A line for each plain field; one that is not set is a comment only."""
    lines = []
    for name, field in type(section).model_fields.items():
        value, said = getattr(section, name), field.description or ""
        if isinstance(value, Section):
            continue
        if get_origin(field.annotation) is Literal and len(choices := get_args(field.annotation)) > 1:
            said = f"{' | '.join(choices)}; {said}"
        lines.append(f"{name} = {_toml(value)}  # {said}" if value is not None else f"# {name} is not set: {said}")
    return lines
