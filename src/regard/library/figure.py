"""Pictures and pages as notebooks show them: SVG that can be saved, and a page in a frame over its still picture."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from pathlib import Path

from regard.library.arguments import checked
from regard.system.errors import RegardError, UsageError

HEIGHT = 720
"""Height of a page in a notebook, in pixels."""
_NO_SCRIPT = re.compile(r"<noscript>.*?</noscript>", re.DOTALL)


@dataclass(frozen=True, repr=False)
class Figure:
    """A picture.

    Args:
        svg: its source.
    """

    svg: str

    def __repr__(self) -> str:
        return f"<Figure: SVG of {len(self.svg):,} characters; save(path) writes it>"

    def _repr_svg_(self) -> str:
        return self.svg

    @checked
    def save(self, path: Path | str) -> Path:
        """Write it to a file that ends in ``.svg``.

        Raises:
            UsageError: the name ends otherwise.
            RegardError: the file cannot be written.
        """
        path = Path(path)
        if path.suffix != ".svg":
            raise UsageError("a picture is saved as .svg", str(path))
        try:
            path.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise RegardError(f"cannot be written: {error.strerror or error}", str(path)) from None
        return path

    @property
    def image(self) -> str:
        """It as an HTML image, which needs no other file."""
        content = b64encode(self.svg.encode()).decode("ascii")
        return f'<img alt="attention" width="100%" src="data:image/svg+xml;base64,{content}">'


def framed_page(page: str, still: Figure) -> str:
    """A page in a frame; the picture shows instead where frames are taken out, or scripts are off.

    Args:
        page: a whole HTML document that needs no other file.
        still: what it shows without its scripts.
    """
    alone = _NO_SCRIPT.sub(lambda _: f"<noscript>{still.image}</noscript>", page, count=1)
    style = "position:absolute;inset:0;width:100%;height:100%;border:0;background:#fff"
    frame = f'<iframe title="attention" style="{style}" srcdoc="{escape(alone)}"></iframe>'
    return f'<div style="position:relative;min-height:{HEIGHT}px;overflow:hidden">{still.image}{frame}</div>'
