"""What ``regard explore`` shows without a model, and the site that ``--save`` makes, from a plain file server."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regard.inspection import SHIPPED
from regard.inspection.folders.models import Models
from regard.library.serve import static_site as saved
from tests.page.models import made
from tests.page.view import Watch, serving

pytestmark = pytest.mark.long(minutes=1)

SAID = "This saved page has answers to its own sentences only."


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a saved site with one sentence of each shipped model."""
    with saved_site(SHIPPED, tmp_path_factory.mktemp("saved") / "site") as address:
        yield address


@contextmanager
def saved_site(models: Sequence[Path], folder: Path) -> Iterator[str]:
    """The address of a saved site with one text of each model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved, "TEXTS", 1)
        saved.save_site(Models(models), folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("name", ["writer", "words", "classifier", "digits"])
def test_every_view_of_other_models_has_its_answers(view: Watch, page_models: Path, tmp_path: Path, name: str) -> None:
    with saved_site([made(name, page_models)], tmp_path / "site") as address:
        shown = view(address)
        views = shown.get_by_role("navigation", name="Views").get_by_role("button")
        views.first.wait_for()
        for one in views.all():
            one.click()
            shown.wait_for_load_state("networkidle")
            assert shown.get_by_role("alert").all_inner_texts() == [], one.inner_text()


def test_the_page_opens_without_a_model(view: Watch, tmp_path: Path) -> None:
    with serving(log=tmp_path / "stderr") as address:
        shown = view(address)
        shown.locator("canvas, svg").first.wait_for()
        assert "a tiny grammar" in shown.get_by_role("note").first.inner_text()
        assert not shown.problems()
        shown.turn_to("Heads")
        shown.textbox.fill("The dog chased the ball because it was hungry.")  # known words, unknown pattern
        shown.get_by_text("follow none of the patterns").wait_for()
        shown.goto("about:blank")


@pytest.mark.parametrize("model", range(len(SHIPPED)), ids=[folder.name for folder in SHIPPED])
def test_every_view_of_a_saved_site(view: Watch, site: str, model: int) -> None:
    """All is asked of the site's own files; what has no answer there says so."""
    shown = view(site, f"#view=heads&model={model}")
    shown.settled()
    assert "pip install regard" in shown.get_by_role("note").first.inner_text()
    for name in shown.tabs.all_inner_texts():
        shown.turn_to(name)
        shown.wait_for_load_state("networkidle")
        shown.drawn()
        problems = shown.problems()
        assert not problems or (
            name in ("Positions", "Words", "Soft dictionary", "Compare") and all(SAID in one for one in problems)
        ), (name, problems)
    shown.turn_to("Heads")
    shown.textbox.fill("A man sleeps.")
    shown.soon(shown.problems, lambda said: any(SAID in one for one in said))
