import pytest


@pytest.fixture(autouse=True)
def _compiled(compiled: None) -> None:
    """The engine needs the kernels."""
