"""Calls from Python: arguments of the wrong type are refused by name, and errors name arguments, not options."""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, Signature, signature, unwrap
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from regard.data.corpora.corpus import Corpus
from regard.system.errors import RegardError, UsageError

P = ParamSpec("P")
T = TypeVar("T")

CALLED = {"from": "start_from", "set": "settings", "weight": "weights"}
"""The arguments whose options of the command line are called otherwise."""
SHORT = 40
"""Most characters of a value that is shown."""
_OPTION = re.compile(
    r"""--(?P<name>[a-z][a-z-]*[a-z])
    (?:[ ](?P<value> "[^"]*" | [A-Z]+\b | (?:never|auto|must)\b | \d+(?:,\d+)*
        | [\w.]+=\w+(?:\.\w+)* | [a-z]+(?:\.[a-z_]+)+ ))?""",
    re.VERBOSE,
)
_SIMPLE: Mapping[object, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    bool: ((bool, np.bool_), "True or False"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    Path: ((os.PathLike,), "a path"),
    NoneType: ((NoneType,), "None"),
}
"""What fits a type, and the type's name for people."""
_SEVERAL = (list, tuple)
_LISTS = (*_SEVERAL, Sequence, Iterable)
_NAMED: Mapping[object, str] = {
    Literal: "a text",
    Mapping: "a dictionary",
    Callable: "a function",
    type: "a class",
    np.ndarray: "an array",
    Corpus: "a corpus, as the functions open_ of regard.data.corpora give",
}


class _Misfit(NamedTuple):
    """A value that is not of the type that it should have, and its place."""

    where: str
    value: object
    wanted: object


class _Names(dict[str, object]):
    """The names that annotations use; what a module imports for types alone is anything."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name, object)


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, which refuses arguments that its annotations do not name; its errors speak of arguments.

    Raises:
        UsageError: an argument is missing, unknown, or of another type; ``where`` is its name.
    """
    known = signature(function)

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        _refuse_misfits(function, known, given, named)
        try:
            return function(*given, **named)
        except RegardError as error:
            speak_python(error, known)
            raise

    return call


def speak_python(error: RegardError, known: Signature) -> None:
    """Let an error name the arguments of a function instead of the options of the command line."""

    def rename(found: re.Match[str], is_where: bool) -> str:
        name = CALLED.get(found["name"], found["name"].replace("-", "_"))
        if name not in known.parameters:
            return found[0]
        value = found["value"] or ""
        if is_where:
            return f"{name} {value}".rstrip()
        if known.parameters[name].annotation in (bool, "bool"):
            return f"{name}=True" + (f" {value}" if value else "")
        quoted = value if value.isupper() or not value or value.startswith('"') else f'"{value}"'
        is_list = str(known.parameters[name].annotation).startswith("Iterable")
        return f"{name}=[{quoted}]" if is_list and quoted else f"{name}={quoted}"

    error.message = _OPTION.sub(lambda found: rename(found, False), error.message)
    error.where = None if error.where is None else _OPTION.sub(lambda found: rename(found, True), error.where)
    error.args = (error.message,)


def _refuse_misfits(
    function: Callable[..., object], known: Signature, given: tuple[object, ...], named: Mapping[str, object]
) -> None:
    """Raise a UsageError for the first argument that does not fit."""
    try:
        bound = known.bind_partial(*given, **named).arguments
    except TypeError as error:
        raise UsageError(str(error), f"{function.__name__}()") from None
    kinds = _kinds(function)
    for name, value in bound.items():
        is_one = known.parameters[name].kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        if is_one and (misfit := _misfit(value, kinds.get(name, object), name)):
            raise UsageError(f"expected {_type_name(misfit.wanted)}, not {_told(misfit.value)}", misfit.where)
    try:
        known.bind(*given, **named)
    except TypeError as error:
        raise UsageError(str(error), f"{function.__name__}()") from None


@cache
def _kinds(function: Callable[..., object]) -> dict[str, object]:
    """The types of a function's arguments."""
    inner = unwrap(function)
    names = getattr(inner, "__globals__", {})
    return get_type_hints(inner, names, _Names(names))


def _misfit(value: object, kind: object, where: str) -> _Misfit | None:
    """What does not fit a type: the value, or the entry of a list."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        found = [_misfit(value, one, where) for one in inner]
        inside = (one for one in found if one is not None and one.where != where)
        return None if None in found else next(inside, _Misfit(where, value, kind))
    if origin in (Annotated, Literal):
        return _misfit(value, inner[0] if origin is Annotated else type(inner[0]), where)
    if isinstance(kind, TypeVar):
        return _misfit(value, kind.__bound__ or object, where)
    if not _is_of(value, kind if origin is None else origin):
        return _Misfit(where, value, kind)
    if not isinstance(value, (*_SEVERAL, np.ndarray)) or origin not in _LISTS:
        return None
    if origin is tuple and inner[-1] is not ...:
        if len(value) != len(inner):
            return _Misfit(where, value, kind)
        return next(filter(None, (_misfit(one, of, where) for one, of in zip(value, inner, strict=True))), None)
    return next(filter(None, (_misfit(one, inner[0], f"{where}[{place}]") for place, one in enumerate(value))), None)


def _is_of(value: object, kind: object) -> bool:
    """Whether a value is of a type without its parameters."""
    if kind in _SIMPLE:
        is_flag = kind in (int, float) and isinstance(value, bool)
        return isinstance(value, _SIMPLE[kind][0]) and not is_flag
    if kind in _LISTS and isinstance(value, str | bytes | Mapping):
        return False
    if kind in _LISTS and isinstance(value, np.ndarray) and not value.ndim:
        return False  # it has no entries, whatever it offers
    if kind in _SEVERAL:
        return isinstance(value, Sequence | np.ndarray)
    if kind in _LISTS:
        return hasattr(value, "__iter__") or hasattr(value, "__getitem__")
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(kind) if not name.startswith("_"))
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def _type_name(kind: object) -> str:
    """A type for people."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type_name(one) for one in inner if one is not NoneType))
    if kind in _SIMPLE:
        return _SIMPLE[kind][1]
    kind = kind if origin is None else origin
    if kind is tuple and inner and inner[-1] is not ...:
        return f"{len(inner)} values ({', '.join(map(_type_name, inner))})"
    if kind in _LISTS:
        return "a list of texts" if inner[:1] == (str,) else "a list"
    return _NAMED.get(kind, f"a {getattr(kind, '__name__', kind)}")


def _told(value: object) -> str:
    """A wrong value for people: its type, and itself where it is short."""
    if value is None:
        return "None"
    is_short = isinstance(value, str | int | float | tuple) and len(repr(value)) <= SHORT
    return f"{value!r} ({type(value).__name__})" if is_short else type(value).__name__
