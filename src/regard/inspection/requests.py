"""Requests of the page, and the binary payloads that answer them.

Fields of requests are typed and bounded, and read by pydantic; a UsageError names the one that does not fit.

A payload is the length of the JSON as four bytes (little-endian), the JSON, zeros to a multiple of eight, then the
arrays, each at a multiple of eight. The JSON's ``arrays`` name each array's type, shape and first byte, counted
from the start of the first array. The page maps typed arrays onto these bytes without copying.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Annotated, ClassVar, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    validate_call,
)

from regard.inspection.forward.record import Kind
from regard.system.errors import RegardError, UsageError
from regard.text.lines import replace_surrogates

if TYPE_CHECKING:
    from regard.models.ablation import Ablations

LONGEST = 100_000
"""Most characters of a text, as in the page's input; a longer one is not tokenized."""
MOST = 1 << 20
"""Most entries of a list."""
ROWS = 256
"""Most tokens of a word."""
MESSAGES = {
    "unexpected_keyword_argument": "is an unknown field",
    "missing_argument": "is missing",
    "dataclass_type": "expected an object",
    "dict_type": "expected an object",
}
"""Messages for people, by type of error; the others are pydantic's."""
NO_NUMBERS = "what it computes are no numbers; are its weights damaged?"
ALIGNED = 8
"""Alignment of every array of a payload, in bytes."""
TYPES = {np.dtype(kind): kind for kind in ("float32", "uint8", "uint16", "int32")}
"""Types for which the page has typed arrays."""
Answer = tuple[Mapping[str, object], Mapping[str, NDArray[np.generic]]]
"""Values and arrays: the arguments of :func:`pack`."""


def drop_nulls(value: object) -> object:
    """The fields of an object that are not null: null means the default."""
    return {name: each for name, each in value.items() if each is not None} if isinstance(value, Mapping) else value


Text = Annotated[
    str,
    Strict(),
    Field(max_length=LONGEST),
    BeforeValidator(lambda value: replace_surrogates(value) if isinstance(value, str) else value),
]
Whole = Annotated[int, Strict(), Field(ge=0)]
Place = Annotated[Whole, Field(le=1 << 20)]
"""An index."""
Places = Annotated[tuple[Place, ...], Field(max_length=ROWS)]
Count = Annotated[int, Strict(), Field(ge=1)]
Number = Annotated[Count, Field(le=65536)]
"""A layer or a head, counted from 1."""
Heads = Annotated[
    tuple[tuple[Kind, Number, Number], ...],
    Field(max_length=100_000, fail_fast=True),
    AfterValidator(lambda heads: tuple(sorted(set(heads)))),
]
Code = Annotated[Text, Field(max_length=40)]
Piece = Annotated[Whole, Field(le=2**31)]
Pixel = Annotated[Whole, Field(le=65535)]
Flag = Annotated[bool, Strict()]

T = TypeVar("T")
P = ParamSpec("P")


class WeightsReplaced(RegardError):
    """The requested weights no longer exist."""


class BaseFields:
    """What has the fields that it names, and no other."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class AblationRequest(BaseFields):
    """The ablations of a pass; see :class:`~regard.models.ablation.Ablations`."""

    off: Heads = ()
    positions: Flag = True
    scaling: Flag = True
    mask: Flag = True

    @property
    def ablations(self) -> Ablations:
        """The ablations to apply to the model."""
        from regard.models.ablation import Ablations, Head

        return Ablations(tuple(Head(*one) for one in self.off), self.positions, self.scaling, self.mask)


Changes = Annotated[AblationRequest, BeforeValidator(drop_nulls)]
UNCHANGED = AblationRequest()


@dataclass(frozen=True)
class ImageRequest(BaseFields):
    """An image by its number, from 0, or by its pixels, row by row."""

    number: Annotated[Whole, Field(le=10**9)] | None = None
    pixels: Annotated[tuple[Pixel, ...], Field(max_length=MOST, fail_fast=True)] | None = None

    def __post_init__(self) -> None:
        if (self.number is None) == (self.pixels is None):
            raise UsageError("an image is named by its number, or given by its pixels", "image")


@dataclass(frozen=True)
class ModelRequest(BaseFields):
    """A model.

    Args:
        model: its number; ``snapshot``: kept weights of its run instead of the best.
        weights: the name that a look gave them, where other weights may not answer; no pass is another by it.
        between: the languages of a translator of several; its usual ones where that says nothing.
    """

    model: Annotated[Whole, Field(le=10**6)] = 0
    snapshot: Text | None = None
    weights: Text | None = field(default=None, compare=False)
    between: tuple[Code | None, Code | None] = (None, None)


@dataclass(frozen=True)
class Request(ModelRequest):
    """The input of a pass.

    Args:
        model, snapshot, weights, between: as of :class:`ModelRequest`.
        text: what is read; ``window``: which part of it, from 1, where it is longer than the model reads.
        target: what is written, forced; ``branch``: the same by the numbers of its pieces.
        image: one that is there, or that was drawn.
        changes: what the model does without.
    """

    text: Text = ""
    target: Text | None = None
    branch: Annotated[tuple[Piece, ...], Field(max_length=LONGEST, fail_fast=True)] | None = None
    image: Annotated[ImageRequest, BeforeValidator(drop_nulls)] | None = None
    changes: Changes = UNCHANGED
    window: Annotated[Count, Field(le=MOST)] | None = None

    def __post_init__(self) -> None:
        if self.target is not None and self.branch is not None:
            raise UsageError("is given as a text and by its pieces; one of them is enough", "target")

    @property
    def own(self) -> Request:
        """The same without a forced target."""
        return replace(self, target=None, branch=None)


Scene = Annotated[Request, BeforeValidator(drop_nulls)]
Asked = TypeVar("Asked", bound=ModelRequest)


def question(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose arguments are checked against their annotations; what does not fit is a UsageError."""
    parameters = signature(function).parameters
    checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(function)

    @wraps(function)
    def ask(*given: P.args, **named: P.kwargs) -> T:
        try:
            return checked(*given, **named)
        except ValidationError as error:
            raise _refusal(error, tuple(parameters)) from None

    return ask


def read(kind: type[T], given: object) -> T:
    """A value of a type, from what JSON can hold.

    Raises:
        UsageError: it does not fit; the error names the innermost field.
    """
    try:
        return TypeAdapter(kind).validate_python(drop_nulls(given))
    except ValidationError as error:
        raise _refusal(error) from None


def split_fields(kind: type[Asked], given: object) -> tuple[Asked, dict[str, object]]:
    """The request in an object's fields, and the other fields."""
    every = read(dict[Annotated[str, Strict()], object], given)
    names = {one.name for one in fields(kind)}
    others = {name: value for name, value in every.items() if name not in names}
    return read(kind, {name: every[name] for name in every.keys() & names}), others


def _refusal(error: ValidationError, parameters: Sequence[str] = ()) -> UsageError:
    """The first thing that does not fit; ``where`` is the innermost name, or that of the parameter."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = first["loc"]
    names = (parameters[place[0]], *place[1:]) if place and isinstance(place[0], int) and parameters else place
    where = next((replace_surrogates(name[:40]) for name in reversed(names) if isinstance(name, str)), None)
    return UsageError(MESSAGES.get(first["type"], first["msg"]), where)


def pack(values: Mapping[str, object], arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Encode values and arrays as one payload.

    Args:
        values: what JSON can hold; ``arrays`` is taken.
        arrays: of a type in :data:`TYPES`.

    Raises:
        RegardError: a value is NaN or infinite.
    """
    places, body, place = {}, list[bytes](), 0
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        places[name] = {"type": TYPES[array.dtype], "shape": list(array.shape), "begin": place}
        body += [content, b"\0" * (-len(content) % ALIGNED)]
        place += len(content) + len(body[-1])
    try:
        head = json.dumps({**values, "arrays": places}, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise RegardError(NO_NUMBERS, "model") from None
    return b"".join([struct.pack("<I", len(head)), head, b"\0" * (-(4 + len(head)) % ALIGNED), *body])


def check_finite(*arrays: NDArray[np.floating]) -> None:
    """Raise a RegardError for a NaN or infinite number."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise RegardError(NO_NUMBERS, "model")
