"""Model folders of every family, shared by all tests of a session."""

from typing import Any

import pytest

from regard.inspection.folders.models import Models
from regard.inspection.questions import attribution
from regard.inspection.questions.answers import answer
from tests.inspection.payloads import Answer, Ask, Number, TaskOf, unpack
from tests.tasks.small_tasks import EVERY, before, put


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer about all heads is whole, however slow the machine is."""
    monkeypatch.setattr(attribution, "SECONDS", 600.0)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """A model folder of each of :data:`small_tasks.EVERY`, in that order."""
    folder = tmp_path_factory.mktemp("models")
    return Models([put(folder / name, make()) for name, make in EVERY.items()])


@pytest.fixture(scope="session")
def number() -> Number:
    return list(EVERY).index


@pytest.fixture(scope="session")
def task(models: Models, number: Number) -> TaskOf:
    """A loaded task by its name."""
    return lambda name: models.load(number(name)).task


@pytest.fixture(scope="session")
def plain(models: Models, number: Number) -> Ask:
    """The answer to a question about a model alone."""

    def asked(question: str, name: str, **given: Any) -> Answer:
        return unpack(answer(models, question, {"model": number(name), **given}))

    return asked


@pytest.fixture(scope="session")
def ask(plain: Ask) -> Ask:
    """The same about a model and what is put before it, as a page takes it."""
    return lambda question, name, **given: plain(question, name, **{**before(name), **given})
