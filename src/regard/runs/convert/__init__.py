"""Import and export of models as others have them: a table of tensor names for each; used by ``runs/conversion.py``."""
