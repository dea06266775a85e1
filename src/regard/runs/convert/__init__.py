"""Import and export of Hugging Face models: one table of tensor names per format; used by ``runs/conversion.py``."""
