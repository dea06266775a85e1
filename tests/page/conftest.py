"""The page in a browser, with small trained models; each model is trained when a test first needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import regard
from tests.page.models import LESSONS, data_of, made
from tests.page.odd import hostile, polyglot, reads_long
from tests.page.reading import TaskOf, Visit, opened
from tests.page.view import BROWSERS, Watch, browsing, chromium, serving
from tests.tasks.small_tasks import put, recurrent

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def page_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the models, one for all processes of a run; ``models.made`` teaches one at first need."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "page-models"


@pytest.fixture(scope="session")
def task(page_models: Path) -> TaskOf:
    """A model by its name, loaded: what the page says of it is compared with what it says itself."""
    return cache(lambda name: regard.load(made(name, page_models), device="cpu"))


@pytest.fixture(scope="session")
def _chromium() -> None:
    pytest.importorskip("playwright")
    if chromium() is None:
        pytest.skip(f"needs a browser: install one of {', '.join(BROWSERS)}, or name it: REGARD_CHROMIUM")


def addresses(tmp_path_factory: pytest.TempPathFactory, *arguments: object) -> Iterator[str]:
    """The address of a page while it is served."""
    with serving(*arguments, log=tmp_path_factory.mktemp("served") / "stderr") as address:
        yield address


@pytest.fixture(scope="session")
def served(_chromium: None, page_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with all models, in the order of ``LESSONS``, and images to look at."""
    folders = [made(name, page_models) for name in LESSONS]
    images = data_of("digits", page_models) / "test.npz"
    yield from addresses(tmp_path_factory, *folders, "--images", images)


@pytest.fixture(scope="session")
def served_translator(_chromium: None, page_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with the translator alone."""
    yield from addresses(tmp_path_factory, made("translator", page_models))


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models that are not as others: of long texts, without attention, with names that are hostile, of languages."""
    folder = tmp_path_factory.mktemp("odd")
    return {
        "long": reads_long(folder),
        "inattentive": put(folder / "inattentive", recurrent(score="none")),
        "hostile": hostile(folder),
        "languages": put(folder / "languages", polyglot()),
    }


@pytest.fixture(scope="session")
def served_odd(_chromium: None, odd: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with these, in that order."""
    yield from addresses(tmp_path_factory, *odd.values())


@pytest.fixture(scope="module")
def browser(_chromium: None) -> Iterator[Browser]:
    """For a module and no longer: as long as it is there, no other event loop can run in this process."""
    with browsing() as browser:
        yield browser


@pytest.fixture
def view(browser: Browser) -> Iterator[Watch]:
    """``view(address)`` opens a page; at the end, errors and requests to anybody else fail the test."""
    watch = Watch(browser)
    yield watch
    watch.close()


@pytest.fixture
def visit(view: Watch, served: str) -> Visit:
    """``visit(name, **more)`` opens the page of all models at one of them, its first pass seen."""
    return partial(opened, view, served)


@pytest.fixture
def visit_one(view: Watch, served_translator: str) -> Visit:
    """The same of the page with the translator alone."""
    return partial(opened, view, served_translator)
