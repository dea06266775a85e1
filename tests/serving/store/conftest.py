from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from regard.serving.store import Store


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind."""
    with closing(Store.open(tmp_path / "data" if request.param == "file" else None)) as found:
        yield found
