"""Documents that somebody made to break a reader: JSON and TOML with values that nobody expects, drawn by seed."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from regard.system.errors import RegardError

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 3, 1.5, 1e308, 10**9, 65536, 2**31, 2**63, 10**300),
    *(float("nan"), float("inf"), -float("inf"), "", "x", "é\n", "\ud800", "\0", "a/b", "..", "x" * 5000),
    *([], {}, [[]], [None], {"a": None}, ["a", "a"]),
)
WRITTEN = ("9" * 400, "9" * 4000, "9" * 5000, "[" * 3000 + "]" * 3000, '{"a":' * 3000 + "5" + "}" * 3000)
"""JSON that Python would not write so."""
OF_TOML = (
    *("true", "0", "-1", "4", "1e308", "1e400", "nan", "inf", '""', '"x"', '"a/b"', '"\\u0000"', f'"{"x" * 5000}"'),
    *("[]", "[[]]", "{}", "{a = 1}", "[1, 2]", "9" * 30, "9" * 5000, "0x" + "f" * 5000, "2000000", "100000"),
    *("1979-05-27", "1979-13-99", "07:32:00", "[" * 2000 + "]" * 2000),
)
_HERE = "@@ here @@"


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document: keys and numbers from the outside in."""
    yield place
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from places(value, (*place, key))


def put(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The document with another value there."""
    if not place:
        return value
    document = copy.deepcopy(document)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return document


def crafted(document: Any, seed: object, count: int) -> Iterator[tuple[str, bytes]]:
    """JSON in which one value is another, missing, there twice or beyond all measure; with what was done."""
    draw = random.Random(str(seed))
    every = list(places(document))
    every = every if len(every) < 400 else [*every[:60], *draw.sample(every, 300)]
    for _ in range(count):
        place, kind = draw.choice(every), draw.choice(("set", "set", "set", "written", "twice", "missing"))
        value, other = (json.dumps(draw.choice(ODD)) for _ in range(2))
        key = json.dumps(place[-1]) if place and isinstance(place[-1], str) else ""
        whole = json.dumps(put(document, place, _HERE))
        here = f"{key}: {json.dumps(_HERE)}" if key else json.dumps(_HERE)
        if kind == "written":
            new = f"{key}: {draw.choice(WRITTEN)}" if key else draw.choice(WRITTEN)
        elif kind == "twice" and key:
            new = f"{key}: {value}, {key}: {other}"
        elif kind == "missing" and key:
            new = f'"no {place[-1]}": 0'
        else:
            new = f"{key}: {value}" if key else value
        yield f"{kind} at {place}: {new[:60]}", whole.replace(here, new, 1).encode()


def crafted_toml(text: str, seed: object, count: int) -> Iterator[tuple[str, bytes]]:
    """TOML in which one value is another, missing, there twice or a table."""
    draw = random.Random(str(seed))
    lines = text.split("\n")
    every = [number for number, line in enumerate(lines) if "=" in line and not line.startswith("#")]
    for _ in range(count):
        number, value = draw.choice(every), draw.choice(OF_TOML)
        key = lines[number].partition("=")[0].strip()
        news = ([f"{key} = {value}"] * 3, [f"{key}.x = {value}"], [lines[number], f"{key} = {value}"], [])
        new = draw.choice([news[0][:1], news[0][:1], *news[1:], [f"{draw.choice(('new', 'format'))} = {value}"]])
        changed = [*lines[:number], *new, *lines[number + 1 :]]
        yield f"{key}: {' and '.join(new)[:60] or 'missing'}", "\n".join(changed).encode()


def answered(what: str, read: Callable[[], Any], *names: Path | str) -> bool:
    """Whether what was crafted can be read; if not, that is one sentence which names what is wrong.

    Args:
        what: was done, for the message of a test that fails.
        read: reads it.
        names: the folder that holds it, or what else may be named instead.
    """
    refused = None
    try:
        read()
    except RegardError as error:
        refused = error
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {str(error)[:300]}") from error
    if refused is None:
        return True
    assert any(str(name) in str(refused) for name in names), f"{what}: {str(refused)[:300]}"
    assert refused.exit_code in (1, 2, 3), what
    return False
