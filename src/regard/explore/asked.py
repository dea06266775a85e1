"""What is asked, read field by field: whoever asks may send anything, and is told in a sentence what does not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from regard.errors import RegardError, UsageError
from regard.explore.kinds import KINDS, Kind, as_kind
from regard.text.normalisation import well_formed

if TYPE_CHECKING:
    from regard.models.changes import Changes

Default = TypeVar("Default")

LONGEST = 100_000
"""Characters of a text, as many as the page lets one type; a longer one is not even cut into tokens."""
MOST = 1 << 20
"""Entries of a list."""


class Fields:
    """The fields of an object, each asked for by name and type; at the end none may be left over.

    Args:
        given: what came, of any type.
        where: what it is, for errors.

    Raises:
        UsageError: it is no object.
    """

    def __init__(self, given: Any, where: str | None = None) -> None:
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise UsageError(f"an object is wanted, not {told(given)}", where)
        self._given = given
        self._known: set[str] = set()

    def _take(self, name: str) -> Any:
        self._known.add(name)
        return self._given.get(name)

    def text(self, name: str, default: Default) -> str | Default:
        """A text, its characters well-formed."""
        value = self._take(name)
        return default if value is None else a_text(value, name)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._take(name)
        if value is not None and not isinstance(value, bool):
            raise UsageError(f"true or false is wanted, not {told(value)}", name)
        return default if value is None else value

    def whole(self, name: str, least: int, most: int, default: Default) -> int | Default:
        """A whole number from ``least`` to ``most``."""
        value = self._take(name)
        return default if value is None else a_whole(value, least, most, name)

    def number(self, name: str, least: float, most: float, default: float) -> float:
        """A number from ``least`` to ``most``."""
        value = self._take(name)
        if value is None:
            return default
        right = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        if not right or not math.isfinite(value):
            raise UsageError(f"a number from {least:g} to {most:g} is wanted, not {told(value)}", name)
        return float(value)

    def word(self, name: str, words: Sequence[str], default: str | None = None) -> str:
        """One of some words."""
        value = self._take(name)
        value = default if value is None else value
        if not isinstance(value, str) or value not in words:
            raise UsageError(f"one of {', '.join(words)} is wanted, not {told(value)}", name)
        return value

    def items(self, name: str, most: int = MOST) -> list[Any] | None:
        """A list of at most so many entries."""
        value = self._take(name)
        return None if value is None else a_list(value, name, most)

    def inner(self, name: str) -> Fields | None:
        """An object inside."""
        value = self._take(name)
        return None if value is None else Fields(value, name)

    def end(self) -> None:
        """Raise a UsageError where there is a field that nobody asked for."""
        if strange := sorted(set(self._given) - self._known):
            known = ", ".join(sorted(self._known))
            raise UsageError(f"{told(strange[0])} is no part of this question; known are {known}")


def a_text(value: Any, name: str) -> str:
    """The value, if it is a text that is not too long."""
    if not isinstance(value, str):
        raise UsageError(f"a text is wanted, not {told(value)}", name)
    if len(value) > LONGEST:
        raise UsageError(f"this text has {len(value):,} characters; at most {LONGEST:,} are read", name)
    return well_formed(value)


def a_whole(value: Any, least: int, most: int, name: str) -> int:
    """The value, if it is a whole number within these bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"a whole number from {least} to {most} is wanted, not {told(value)}", name)
    return value


def a_list(value: Any, name: str, most: int = MOST) -> list[Any]:
    """The value, if it is a list that is not too long."""
    if not isinstance(value, list | tuple):
        raise UsageError(f"a list is wanted, not {told(value)}", name)
    if len(value) > most:
        raise UsageError(f"has {len(value):,} entries; at most {most:,} are read", name)
    return list(value)


def told(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if abs(value) < 10**15 else "a number that large"
    return "a list" if isinstance(value, list | tuple) else "an object"


class Replaced(RegardError):
    """A question is about weights that are there no more."""


@dataclass(frozen=True)
class Without:
    """What the model does without; see :class:`~regard.models.changes.Changes`."""

    off: tuple[tuple[Kind, int, int], ...] = ()
    positions: bool = True
    scaling: bool = True
    mask: bool = True

    @classmethod
    def read(cls, given: Fields | None) -> Without:
        """From an object's fields."""
        if given is None:
            return cls()
        heads = {_head(one) for one in given.items("off", 100_000) or ()}
        positions, scaling, mask = (given.flag(name, True) for name in ("positions", "scaling", "mask"))
        given.end()
        return cls(tuple(sorted(heads)), positions, scaling, mask)

    @property
    def changes(self) -> Changes:
        """To be made while the model is looked at."""
        from regard.models.changes import Changes, Head

        return Changes(tuple(Head(*one) for one in self.off), self.positions, self.scaling, self.mask)


def _head(given: Any) -> tuple[Kind, int, int]:
    parts = a_list(given, "off", 3)
    if len(parts) != 3 or not isinstance(parts[0], str) or parts[0] not in KINDS:
        raise UsageError(f"a head is one of {', '.join(KINDS)}, then its layer and its number", "off")
    layer, head = (a_whole(part, 1, 65536, "off") for part in parts[1:])
    return as_kind(parts[0]), layer, head


@dataclass(frozen=True)
class Asked:
    """What a pass is of.

    Args:
        model: its number; ``snapshot``: kept weights of its run instead of the best.
        weights: the name that a look gave them, where other weights may not answer; no pass is another by it.
        text: what is read; ``window``: which part of it, from 1, where it is longer than the model reads.
        target: what is written, forced; ``branch``: the same by the numbers of its pieces.
        image: the number of one that is there; ``pixels``: one that was drawn, row by row.
        without: what the model does without.
    """

    model: int = 0
    snapshot: str | None = None
    text: str = ""
    target: str | None = None
    branch: tuple[int, ...] | None = None
    image: int | None = None
    pixels: tuple[int, ...] | None = None
    without: Without = field(default_factory=Without)
    weights: str | None = field(default=None, compare=False)
    window: int | None = None

    @classmethod
    def read(cls, given: Fields) -> Asked:
        """From an object's fields, which may have others beside these.

        Raises:
            UsageError: a field is of another type, or too large.
        """
        branch = given.items("branch", LONGEST)
        number, snapshot, weights = which(given)
        found = cls(
            number,
            snapshot,
            given.text("text", ""),
            given.text("target", None),
            None if branch is None else tuple(a_whole(id, 0, 2**31, "branch") for id in branch),
            weights=weights,
            without=Without.read(given.inner("changes")),
            window=given.whole("window", 1, MOST, None),
        )
        if found.target is not None and found.branch is not None:
            raise UsageError("is given as a text and by its pieces; one of them is enough", "target")
        return found._pictured(given.inner("image"))

    def _pictured(self, given: Fields | None) -> Asked:
        if given is None:
            return self
        number, pixels = given.whole("number", 0, 10**9, None), given.items("pixels")
        given.end()
        if (number is None) == (pixels is None):
            raise UsageError("an image is named by its number, or given by its pixels", "image")
        if pixels is None:
            return replace(self, image=number)
        return replace(self, pixels=tuple(a_whole(one, 0, 65535, "pixels") for one in pixels))

    @property
    def own(self) -> Asked:
        """The same with what the model writes itself."""
        return replace(self, target=None, branch=None)


def which(given: Fields) -> tuple[int, str | None, str | None]:
    """Which model, which weights of its run, and their name where other weights may not answer."""
    return given.whole("model", 0, 10**6, 0), given.text("snapshot", None), given.text("weights", None)
