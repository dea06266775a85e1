"""Request validation: reads each field by name, type and bounds; unknown or ill-typed fields raise a UsageError."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from regard.explore.kinds import KINDS, Kind, as_kind
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers.byte_pieces import replace_surrogates

if TYPE_CHECKING:
    from regard.models.ablation import Ablations

Default = TypeVar("Default")

LONGEST = 100_000
"""Most characters of a text, as in the page's input; a longer one is not tokenized."""
MOST = 1 << 20
"""Most entries of a list."""


class Fields:
    """The fields of an object, read by name and type; unread fields are an error at the end.

    Args:
        given: a parsed value of any type.
        where: its name, for errors.

    Raises:
        UsageError: it is not an object.
    """

    def __init__(self, given: Any, where: str | None = None) -> None:
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise UsageError(f"expected an object, not {format_value(given)}", where)
        self._given = given
        self._known: set[str] = set()

    def _take(self, name: str) -> Any:
        self._known.add(name)
        return self._given.get(name)

    def text(self, name: str, default: Default) -> str | Default:
        """A well-formed text."""
        value = self._take(name)
        return default if value is None else check_text(value, name)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._take(name)
        if value is not None and not isinstance(value, bool):
            raise UsageError(f"expected true or false, not {format_value(value)}", name)
        return default if value is None else value

    def whole(self, name: str, least: int, most: int, default: Default) -> int | Default:
        """An integer from ``least`` to ``most``."""
        value = self._take(name)
        return default if value is None else check_whole(value, least, most, name)

    def number(self, name: str, least: float, most: float, default: float) -> float:
        """A number from ``least`` to ``most``."""
        value = self._take(name)
        if value is None:
            return default
        right = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        if not right or not math.isfinite(value):
            raise UsageError(f"expected a number from {least:g} to {most:g}, not {format_value(value)}", name)
        return float(value)

    def word(self, name: str, words: Sequence[str], default: str | None = None) -> str:
        """One of the given words."""
        value = self._take(name)
        value = default if value is None else value
        if not isinstance(value, str) or value not in words:
            raise UsageError(f"expected one of {', '.join(words)}, not {format_value(value)}", name)
        return value

    def items(self, name: str, most: int = MOST) -> list[Any] | None:
        """A list of at most ``most`` entries."""
        value = self._take(name)
        return None if value is None else check_list(value, name, most)

    def inner(self, name: str) -> Fields | None:
        """A nested object."""
        value = self._take(name)
        return None if value is None else Fields(value, name)

    def end(self) -> None:
        """Raise a UsageError for an unknown field."""
        if strange := sorted(set(self._given) - self._known):
            known = ", ".join(sorted(self._known))
            raise UsageError(f"{format_value(strange[0])} is an unknown field; known are {known}")


def check_text(value: Any, name: str) -> str:
    """The value, if it is a text of allowed length."""
    if not isinstance(value, str):
        raise UsageError(f"expected a text, not {format_value(value)}", name)
    if len(value) > LONGEST:
        raise UsageError(f"this text has {len(value):,} characters; at most {LONGEST:,} are read", name)
    return replace_surrogates(value)


def check_whole(value: Any, least: int, most: int, name: str) -> int:
    """The value, if it is an integer within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"expected an integer from {least} to {most}, not {format_value(value)}", name)
    return value


def check_list(value: Any, name: str, most: int = MOST) -> list[Any]:
    """The value, if it is a list of allowed length."""
    if not isinstance(value, list | tuple):
        raise UsageError(f"expected a list, not {format_value(value)}", name)
    if len(value) > most:
        raise UsageError(f"has {len(value):,} entries; at most {most:,} are read", name)
    return list(value)


def format_value(value: Any) -> str:
    """A short description of a value, for messages."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if abs(value) < 10**15 else "a number that large"
    return "a list" if isinstance(value, list | tuple) else "an object"


class WeightsReplaced(RegardError):
    """The requested weights no longer exist."""


@dataclass(frozen=True)
class AblationRequest:
    """The ablations of a pass; see :class:`~regard.models.ablation.Ablations`."""

    off: tuple[tuple[Kind, int, int], ...] = ()
    positions: bool = True
    scaling: bool = True
    mask: bool = True

    @classmethod
    def from_fields(cls, given: Fields | None) -> AblationRequest:
        """Read them from an object's fields."""
        if given is None:
            return cls()
        heads = {_head(one) for one in given.items("off", 100_000) or ()}
        positions, scaling, mask = (given.flag(name, True) for name in ("positions", "scaling", "mask"))
        given.end()
        return cls(tuple(sorted(heads)), positions, scaling, mask)

    @property
    def changes(self) -> Ablations:
        """The ablations to apply to the model."""
        from regard.models.ablation import Ablations, Head

        return Ablations(tuple(Head(*one) for one in self.off), self.positions, self.scaling, self.mask)


def _head(given: Any) -> tuple[Kind, int, int]:
    parts = check_list(given, "off", 3)
    if len(parts) != 3 or not isinstance(parts[0], str) or parts[0] not in KINDS:
        raise UsageError(f"a head is one of {', '.join(KINDS)}, then its layer and its number", "off")
    layer, head = (check_whole(part, 1, 65536, "off") for part in parts[1:])
    return as_kind(parts[0]), layer, head


@dataclass(frozen=True)
class Request:
    """The input of a pass.

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
    without: AblationRequest = field(default_factory=AblationRequest)
    weights: str | None = field(default=None, compare=False)
    window: int | None = None

    @classmethod
    def from_fields(cls, given: Fields) -> Request:
        """Read it from an object's fields; further fields are allowed.

        Raises:
            UsageError: a field is of another type, or too large.
        """
        branch = given.items("branch", LONGEST)
        number, snapshot, weights = model_reference(given)
        found = cls(
            number,
            snapshot,
            given.text("text", ""),
            given.text("target", None),
            None if branch is None else tuple(check_whole(id, 0, 2**31, "branch") for id in branch),
            weights=weights,
            without=AblationRequest.from_fields(given.inner("changes")),
            window=given.whole("window", 1, MOST, None),
        )
        if found.target is not None and found.branch is not None:
            raise UsageError("is given as a text and by its pieces; one of them is enough", "target")
        return found._image_request(given.inner("image"))

    def _image_request(self, given: Fields | None) -> Request:
        if given is None:
            return self
        number, pixels = given.whole("number", 0, 10**9, None), given.items("pixels")
        given.end()
        if (number is None) == (pixels is None):
            raise UsageError("an image is named by its number, or given by its pixels", "image")
        if pixels is None:
            return replace(self, image=number)
        return replace(self, pixels=tuple(check_whole(one, 0, 65535, "pixels") for one in pixels))

    @property
    def own(self) -> Request:
        """The same without a forced target."""
        return replace(self, target=None, branch=None)


def model_reference(given: Fields) -> tuple[int, str | None, str | None]:
    """Model number, snapshot, and the name of the weights if no others may answer."""
    return given.whole("model", 0, 10**6, 0), given.text("snapshot", None), given.text("weights", None)
