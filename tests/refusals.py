"""The errors that users get, matched by class and place instead of by their English."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regard.system.errors import RegardError


@contextmanager
def refused(
    error: type[RegardError] = RegardError, where: str | Path | None = None, *holds: str
) -> Iterator[pytest.ExceptionInfo[RegardError]]:
    """The body raises exactly this class of error, about this place, with these words in its text.

    Args:
        error: the class itself; a subclass fails.
        where: the option, field, file or ``file:line``; the end of a path is enough. None leaves it open.
        holds: names and numbers, never wording, that the message has to hold.
    """
    with pytest.raises(error) as caught:
        yield caught
    found = caught.value
    assert type(found) is error, f"{type(found).__name__}, not {error.__name__}: {found}"
    if where is not None:
        assert found.where is not None, f"names no place: {found}"
        assert found.where == str(where) or found.where.endswith(f"/{where}"), f"{found.where!r}, not {str(where)!r}"
    for word in holds:
        assert word in str(found), f"{word!r} is not in: {found}"
