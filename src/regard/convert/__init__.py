"""Models brought in and taken out: one table of names for each format; ``tasks/conversion.py`` makes the folders."""

from regard.convert.exportable import DECIDING, Exports, exports
from regard.convert.incoming import Brought, brought
from regard.convert.outgoing import taken

__all__ = ["DECIDING", "Brought", "Exports", "brought", "exports", "taken"]
