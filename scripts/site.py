"""The sources of the documentation's site, and what is dead or foreign in the built one; ``scripts/docs`` calls both.

python scripts/site.py stage FOLDER    README, docs and a page for each documented module, as Sphinx wants them
python scripts/site.py check FOLDER    dead links and anchors, and anything loaded from another host
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
COURSE = ["index", "1-attention", "2-bert-gpt-t5", "3-images"]
TUTORIALS = ["your-own-translator", "your-own-model", "what-a-head-is-for"]
CONTENTS = {
    "Learn": [*(f"course/{name}" for name in COURSE), *(f"tutorials/{name}" for name in TUTORIALS)],
    "Use": [
        *("tasks", "recipes", "reading-attention", "bring-your-own-model", "convert"),
        *("compare", "metrics", "faq", "troubleshooting"),
    ],
    "Reference": [
        *(f"api/{name}" for name in ("regard", "tasks", "nn", "models", "decoding")),
        *("generate", "glossary", "paper-map", "papers"),
    ],
    "Results": ["results", "without", "parallel", "experiments", "demo-corpus"],
    "Project": ["ARCHITECTURE", "native/README", "CONTRIBUTING", "CHANGELOG"],
}
"""The pages by caption; a document of ``docs`` that is not here is added to "Use"."""
SHORT = {
    "course/index": "The course",
    "course/1-attention": "1 From RNN to Transformer",
    "course/2-bert-gpt-t5": "2 BERT, GPT, T5",
    "course/3-images": "3 Images",
    "tasks": "Tasks",
    "reading-attention": "Reading attention",
    "metrics": "The training log",
    "paper-map": "From paper to code",
    "troubleshooting": "Troubleshooting",
    "faq": "Questions and answers",
}
"""What the table of contents calls a page with a long title."""
PACKAGES = ("nn", "models", "decoding")
"""Packages whose modules have a page each."""
TASKS = (
    "translation.translator",
    "classification.classifier",
    "classification.pairs",
    "tagging.tagger",
    "language.generator",
    "language.masked",
    "images.classifier",
    "text.encoding",
    "text.task",
)
"""Modules of ``regard.tasks`` with the classes that ``regard.load`` gives."""
ALONE = ("ARCHITECTURE.md", "native/README.md", "CONTRIBUTING.md", "CHANGELOG.md")
CITED = re.compile(r"\[([A-Z][a-z]+\d{2}[a-z]?\b[^\[\]]*)\](?!\()")
"""A citation, such as [Vaswani17 §3.2.1; Ba16]."""
KEY = re.compile(r"\b[A-Z][a-z]+\d{2}[a-z]?\b")
LAB = "lab/"
"""The folder below ``docs`` of the lab book, a log that is read in the repository only."""
COPIED = ("benchmarks/results", "examples")
"""Folders with files that documents link to."""


def stage(folder: Path) -> None:
    """Write the sources of the site to an empty folder."""
    (folder / "docs").mkdir(parents=True)
    for path in (ROOT / "docs").iterdir():
        if path.suffix == ".md":
            put(folder / "docs" / path.name, markdown(path))
        elif path.is_file():
            shutil.copy(path, folder / "docs")
    for path in (ROOT / "docs" / "decisions").glob("*.md"):
        put(folder / "docs" / "decisions" / path.name, markdown(path))
    put(folder / "docs" / "course" / "index.md", markdown(ROOT / "docs" / "course" / "index.md"))
    for path in (*(ROOT / "docs").glob("course/*.ipynb"), *(ROOT / "docs").glob("tutorials/*.ipynb")):
        beside = folder / "docs" / path.parent.name
        put(beside / f"{path.stem}.md", notebook(path, beside))
        shutil.copy(path, beside)
    for name in ALONE:
        put(folder / name, markdown(ROOT / name))
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name)
    put(folder / "index.md", markdown(ROOT / "README.md") + contents(folder))
    for name, text in reference():
        put(folder / "docs" / "api" / f"{name}.rst", text)


def put(path: Path, text: str) -> None:
    """Write a file, and the folder it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def markdown(path: Path) -> str:
    """A document whose citations lead to the papers, without links to what no site shows: folders and the lab book."""
    return prepared(path, path.read_text(encoding="utf-8"))


def prepared(path: Path, text: str) -> str:
    """The text of a document, or of a cell of a notebook; links lead to notebooks as pages, to sources as reference."""
    beside = dict.fromkeys(("decisions", "course", "tutorials"), "../papers.md")
    papers = {"docs": "papers.md", **beside}.get(path.parent.name, "docs/papers.md")
    text = re.sub(r"(\]\([\w./-]+)\.ipynb(?=[#)])", r"\1.md", text)
    text = re.sub(r"\[([^\]]+)\]\(\.\./\.\./src/regard/([\w/]+)\.py\)", lambda found: source(*found.groups()), text)
    if path.name == "papers.md":
        text = re.sub(
            r"^\* \*\*(\w+)\*\*", lambda found: f"* [**{found[1]}**]{{#{found[1].lower()}}}", text, flags=re.M
        )
    text = re.sub(
        r"\[([^\]]+)\]\(([\w./-]+)(#[\w-]+)?\)",
        lambda found: found[1] if LAB in found[2] or (path.parent / found[2]).is_dir() else found[0],
        text,
    )
    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)  # code, and what is between
    return "".join(
        part if place % 2 else CITED.sub(lambda found: cited(found[1], papers), part)
        for place, part in enumerate(parts)
    )


def source(name: str, file: str) -> str:
    """A link from a name to the reference, where its module has a page there."""
    known = file.partition("/")[0] in PACKAGES
    return f"[{name}](../api/{file.replace('/', '.')}.rst)" if known else name


def notebook(path: Path, folder: Path) -> str:
    """A notebook as a document: text, code, what that shows, and itself to download; pictures go to a folder."""
    parts = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        text = "".join(cell["source"])
        parts.append(prepared(path, text) if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [shown(one, folder / f"{path.stem}-{number}.svg") for one in cell.get("outputs", [])]
    parts.insert(1, f"[The notebook to run]({path.name})")
    return "\n\n".join(parts) + "\n"


def shown(output: dict[str, Any], picture: Path) -> str:
    """What a cell shows: its picture, which is written to a file, else its text."""
    forms = {kind: "".join(text) for kind, text in output.get("data", {"text/plain": output.get("text")}).items()}
    if "image/svg+xml" in forms:
        put(picture, forms["image/svg+xml"])
        return f"![{re.findall('<title[^>]*>([^<]*)', forms['image/svg+xml'])[0]}]({picture.name})"
    if "text/html" in forms:
        return f"````{{raw}} html\n{forms['text/html']}\n````"
    return f"````{{code-block}} text\n:class: output\n\n{forms['text/plain']}\n````"


def cited(inside: str, papers: str) -> str:
    """A citation with a link for each of its papers."""
    return "[" + KEY.sub(lambda key: f"[{key[0]}]({papers}#{key[0].lower()})", inside) + "]"


def contents(folder: Path) -> str:
    """The hidden tables of contents at the end of the first page."""
    listed = {name for names in CONTENTS.values() for name in names}
    more = sorted(path.stem for path in (folder / "docs").glob("*.md") if path.stem not in listed)
    decisions = sorted(f"decisions/{path.stem}" for path in (folder / "docs" / "decisions").glob("*.md"))
    tables, added = [], {"Use": more, "Project": decisions}
    for caption, names in CONTENTS.items():
        pages = [entry(name) for name in [*names, *added.get(caption, [])]]
        tables.append("\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]))
    return "".join(tables)


def entry(name: str) -> str:
    """A line of a table of contents."""
    path = name if f"{name}.md" in ALONE else f"docs/{name}"
    return f"{SHORT[name]} <{path}>" if name in SHORT else path


def reference() -> Iterator[tuple[str, str]]:
    """Name and text of each page that is made of docstrings."""
    yield "regard", page("regard", ".. automodule:: regard\n   :members:\n   :imported-members:\n")
    yield "tasks", page("regard.tasks", TASKS_INTRO + "".join(section(f"regard.tasks.{name}") for name in TASKS))
    for package in PACKAGES:
        names = list(modules(package))
        entries = [f"   {name.partition('.')[2]} <{name}>" for name in names]
        below = "\n".join(["", ".. toctree::", "   :maxdepth: 1", "", *entries, ""])
        yield package, page(f"regard.{package}", module(f"regard.{package}") + below)
        for name in names:
            yield name, page(f"regard.{name}", module(f"regard.{name}"))


TASKS_INTRO = "``regard.load`` gives an object of one of these classes, and ``regard.train`` too.\n\n"


def modules(package: str) -> Iterator[str]:
    """The modules of a package in alphabetical order, packages in it before their modules."""
    top = ROOT / "src" / "regard"
    for path in sorted((top / package).rglob("*.py")):
        words = path.relative_to(top).with_suffix("").parts
        words = words[:-1] if words[-1] == "__init__" else words
        if words != (package,) and not (path.name == "__init__.py" and not path.read_text(encoding="utf-8").strip()):
            yield ".".join(words)


def page(name: str, text: str) -> str:
    """A page of the reference."""
    return f"{name}\n{'=' * len(name)}\n\n{text}"


def section(name: str) -> str:
    """A module below others on a page."""
    return f"{name}\n{'-' * len(name)}\n\n{module(name)}"


def module(name: str) -> str:
    """What autodoc says of a module; what it only imports is told where it is defined."""
    return f".. automodule:: {name}\n   :members:\n   :ignore-module-all:\n\n"


class Page(HTMLParser):
    """What a built page links to, loads and can be linked at."""

    LOADS: ClassVar[set[tuple[str, str]]] = {
        ("img", "src"),
        ("script", "src"),
        ("iframe", "src"),
        ("link", "href"),
        ("source", "src"),
        ("img", "srcset"),
    }

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._style = tag == "style"
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif (tag, name) in self.LOADS:
                self.loads.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)
            elif name == "style":
                self.loads += addresses(value)

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loads += addresses(data)


def addresses(style: str) -> list[str]:
    """What a style sheet loads."""
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    found = re.findall(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""", style)
    return [one or other for one, other in found]


def faults(folder: Path) -> list[str]:
    """One line for each dead link or anchor, and for each thing that would be loaded from another host."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else [f"{folder}: there is no page"]
    for path, page in pages.items():
        name = path.relative_to(folder)
        found += [f"{name}: loads {load}" for load in page.loads if foreign(load)]
        for link in [*page.links, *(load for load in page.loads if not foreign(load))]:
            if what := dead(link, path, folder, pages):
                found.append(f"{name}: {what}: {link}")
    for path in sorted(folder.rglob("*.css")):
        loads = addresses(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(folder)}: loads {load}" for load in loads if foreign(load)]
    return sorted(set(found))


def foreign(address: str) -> bool:
    """Whether another host would be asked."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp", "ws", "wss")


def dead(link: str, path: Path, folder: Path, pages: dict[Path, Page]) -> str:
    """What is wrong with a link of the page at ``path``; empty if nothing is, or if it leads elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(folder.resolve()) and target != path:
        return "leads out of the site"
    if not target.is_file():
        return "no such file"
    known = pages.get(path if target == path else folder / target.relative_to(folder.resolve()))
    anchor = unquote(parts.fragment)
    return "no such anchor" if anchor and known is not None and anchor not in known.anchors else ""


def main(words: list[str]) -> int:
    """Run one of the two commands; its exit code."""
    if len(words) != 2 or words[0] not in ("stage", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    if words[0] == "stage":
        stage(Path(words[1]))
        return 0
    found = faults(Path(words[1]))
    for fault in found:
        print(fault, file=sys.stderr)
    print(f"{len(found)} dead or foreign links" if found else "every link and anchor exists; no other host is asked")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
