"""How Regard is installed here: whole or for use only, and whether two installations lie on top of each other.

The distribution ``regard-run`` is the package without the modules that compute by torch, and does without
:data:`LEFT_OUT`; ``regard`` is it and these (docs/decisions, Two distributions).
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from regard.system.errors import UsageError

RUN, WHOLE = "regard_run", "regard"
"""Names of the distributions, as their folders of metadata are named."""
SERVING = ("python_multipart", "prometheus_client", "py3langid")
"""What ``regard serve`` needs beside starlette and uvicorn; ``regard-run[serve]`` has all of them."""
LEFT_OUT = ("torch", "sacrebleu", "rapidrouge", "zstandard", "sentencepiece", "starlette", "uvicorn", *SERVING)
"""Packages that using a model of ours by the engine does not need; also the names of their modules."""


def not_installed(name: str) -> UsageError:
    """What is said where one of :data:`LEFT_OUT` is needed and missing."""
    alone = "" if name == "torch" else f", or {name} alone"  # the modules that need torch are in ``regard``, too
    return UsageError(f"this needs {name}, which is not installed here: pip install regard{alone}")


def version_of(name: str) -> str:
    """The version of an installed distribution; ``none`` where it is not installed, as torch may be."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def missing(error: ImportError) -> UsageError | None:
    """What is said where one of :data:`LEFT_OUT`, or a module of ours, is missing; ``None``: that error is another."""
    cause = error.__cause__
    name = (error.name or (cause.name if isinstance(cause, ImportError) else None) or "").partition(".")[0]
    if name == WHOLE and version_of(RUN) != "none" and version_of(WHOLE) == "none":
        return UsageError("this needs the rest of Regard, and here is regard-run alone: pip install regard")
    return not_installed(name) if name in LEFT_OUT else None


def require(*names: str) -> None:
    """Say that something is missing before a command begins that imports it later.

    Raises:
        UsageError: it names the first of the modules that is not installed.
    """
    for name in names:
        if find_spec(name) is None:
            raise not_installed(name)


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
