import pytest

from regard.system import kernels


@pytest.fixture(autouse=True)
def _compiled() -> None:
    """The engine needs the kernels."""
    if not kernels.available():
        pytest.skip("no compiler was there when Regard was installed")
