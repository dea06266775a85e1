"""Import and export of Hugging Face models: one table of tensor names per format; used by ``runs/conversion.py``."""

from regard.runs.convert.hub_export import DECIDING, Exports, exports, hub_files
from regard.runs.convert.hub_import import ImportedModel, read_hub_model

__all__ = ["DECIDING", "ImportedModel", "Exports", "exports", "hub_files", "read_hub_model"]
