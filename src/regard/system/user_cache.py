"""Where files lie that a model's folder cannot take: the user's cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Regard's folder in ``XDG_CACHE_HOME``, else in ``~/.cache``; it may not exist."""
    given = environment.get("XDG_CACHE_HOME", "")
    cache = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return cache / "regard"
