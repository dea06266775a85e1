"""Models brought in and taken out: one table of names for each format; ``tasks/conversion.py`` makes the folders."""

from regard.convert.incoming import Brought, brought
from regard.convert.outgoing import starts_alone, taken

__all__ = ["Brought", "brought", "starts_alone", "taken"]
