"""Models brought in and taken out: one table of names for each format.

``brought`` and ``taken`` give contents; ``import_model`` and ``export_model`` write them into a folder.
"""

from regard.convert.incoming import Brought, brought, import_model
from regard.convert.outgoing import export_model, taken

__all__ = ["Brought", "brought", "export_model", "import_model", "taken"]
