"""Every test here is of each instruction set that the processor has, and needs the compiled kernels."""

from collections.abc import Iterator

import pytest

from regard.system import kernels


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "instruction_set" in metafunc.fixturenames:
        sets = kernels.instruction_sets() if kernels.available() else ["none"]
        metafunc.parametrize("instruction_set", sets, indirect=True)


@pytest.fixture
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    if not kernels.available():
        pytest.skip("no compiler was there when Regard was installed")
    from regard.system.kernels import _native

    before = _native.in_use()
    kernels.use(request.param)
    yield request.param
    kernels.use(before)
