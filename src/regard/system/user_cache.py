"""Where files lie that a model's folder cannot take: the user's cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_cache(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Regard's folder in ``XDG_CACHE_HOME``, else in ``~/.cache``; it may not exist. ``None``: the user has no home."""
    given = environment.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given) / "regard"
    try:
        return Path.home() / ".cache" / "regard"
    except RuntimeError:
        return None
