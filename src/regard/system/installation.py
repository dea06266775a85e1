"""How Regard is installed here: with torch or for use only, and whether two installations lie on top of each other.

The distribution ``regard-run`` is the package without torch, ``regard`` the same with it (ARCHITECTURE, Dependencies).
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from regard.system.errors import UsageError

RUN, WHOLE = "regard_run", "regard"
"""Names of the distributions, as their folders of metadata are named."""
NO_TORCH = "this needs torch, which is not installed here: pip install torch"


def without_torch(error: ImportError) -> UsageError | None:
    """What is said where torch is missing; ``None``: that error is of another module."""
    return UsageError(NO_TORCH) if (error.name or "").partition(".")[0] == "torch" else None


def require_torch() -> None:
    """Say that torch is missing before a command begins that imports it later.

    Raises:
        UsageError: it is not installed.
    """
    if find_spec("torch") is None:
        raise UsageError(NO_TORCH)


def refuse_mixture(folder: str) -> None:
    """Refuse to run files of two versions.

    A source installation of ``regard`` and a wheel of ``regard-run`` hold the same files, and pip compares no files of
    distributions with two names: of two versions each has overwritten part of the other.

    Args:
        folder: that the package lies in, beside the metadata of installed distributions.

    Raises:
        UsageError: there are two versions.
    """
    found = {}
    for name in os.listdir(folder):
        distribution, _, rest = name.partition("-")
        if distribution in (RUN, WHOLE) and rest.endswith(".dist-info"):
            found[distribution] = rest.removesuffix(".dist-info")
    if len(set(found.values())) > 1:
        raise UsageError(
            f"regard {found[WHOLE]} and regard-run {found[RUN]} are installed on top of each other; "
            "pip uninstall -y regard regard-run, then install one of them"
        )
