"""Attention exploration: records of one forward pass, pictures of it, and the answers behind the page.

The name is that of the public function too: ``regard.explore(model)`` opens the page of a model.
"""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = Path(__file__).parent / "page"
"""The page as it was built."""


class _Room(ModuleType):
    """This package, which answers a call as :func:`regard.library.served.explore` does."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return import_module("regard.library.served").explore(*given, **named)


sys.modules[__name__].__class__ = _Room
