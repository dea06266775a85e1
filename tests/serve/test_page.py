"""The static files of the page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from regard import explore
from regard.serve.app import FOR_EVER, OTHER, File, files
from regard.system.errors import RegardError
from tests.refusals import refused


def test_the_index_and_the_assets_are_the_page(folder: Path) -> None:
    (folder / "assets" / "fonts").mkdir()
    (folder / "assets" / "fonts" / "a.woff2").write_bytes(b"")
    found = files(folder)
    assert found.keys() == {
        "index.html",
        *("assets/index-Ab3_x-9Z.js", "assets/plain.css", "assets/font-Ab3_x-9Z.woff2", "assets/fonts/a.woff2"),
    }
    assert all(file.content == (folder / name).read_bytes() for name, file in found.items())


def test_without_a_page_one_sentence_says_so(tmp_path: Path) -> None:
    with refused(RegardError, tmp_path):
        files(tmp_path)
    (tmp_path / "index.html").write_text("a")
    assert files(tmp_path).keys() == {"index.html"}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("assets/index-DiwrgTda.js", True),
        ("assets/a.b-D_wr-Tda.woff2", True),
        ("index.html", False),
        ("assets/plain.css", False),
        ("assets/index-short.js", False),
        ("assets/DiwrgTda.js", False),
    ],
)
def test_what_changes_its_name_is_kept(name: str, kept: bool) -> None:
    assert (File(name, b"").headers.get("Cache-Control") == FOR_EVER) == kept


def test_what_nobody_knows_is_bytes() -> None:
    assert File("assets/a.xyz", b"").headers["Content-Type"] == OTHER
    assert File("assets/a.json", b"").headers["Content-Type"] == "application/json"


def test_what_would_grow_is_not_compressed() -> None:
    assert File("assets/a.js", b"a").gzip_content is None
    assert File("assets/a.png", b"a" * 1000).gzip_content is None
    assert File("assets/a.js", b"a" * 1000).gzip_content is not None


class Index(HTMLParser):
    """What an index asks for, and what its policy would refuse."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.route_error: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.asked += [given[name] for name in ("src", "href") if given.get(name)]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.route_error.append(tag)
        self.route_error += [name for name in given if name == "style" or name.startswith("on")]


def test_what_the_policy_refuses_is_found() -> None:
    found = Index('<p style="a" onclick="b"><style></style><script>c</script><script src="d"></script>')
    assert found.route_error == ["style", "onclick", "style", "script"]
    assert found.asked == ["d"]


def test_the_built_page_asks_for_nothing_but_itself() -> None:
    built = files(Path(explore.__file__).parent / "page")
    index = Index(built["index.html"].content.decode())
    assert index.route_error == []
    assert index.asked
    assert {name.removeprefix("./").removeprefix("/") for name in index.asked} <= built.keys()
    assert all(file.headers["Content-Type"] != OTHER for file in built.values())
    assert all("Cache-Control" in file.headers for name, file in built.items() if name != "index.html")
