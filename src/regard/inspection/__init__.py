"""What is seen inside a model: records of one forward pass, pictures of it, and the answers behind the page."""

from pathlib import Path

PAGE = Path(__file__).parent / "page"
"""The page as it was built."""
SHIPPED = tuple(Path(__file__).parent / "shipped" / name for name in ("transformer", "recurrent"))
"""Two small finished models of the demonstration's grammar, which ``scripts/shipped_models.py`` trains."""
