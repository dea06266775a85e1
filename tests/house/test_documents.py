"""What the documents say of the code is true of it."""

import ast
import doctest
import re
from dataclasses import fields
from pathlib import Path

import pytest

from regard.training.log import Start, StepMetrics
from regard.training.objective import Sample
from tests.house.trees import nodes

ROOT = Path(__file__).parents[2]
BEGUN = ("translation", "text-to-text", "classification", "sentence-pairs", "tagging", "language-model", "masked-lm")
"""Tasks whose training can begin from another model."""


@pytest.mark.parametrize(("kind", "record"), [("start", Start), ("step", StepMetrics), ("sample", Sample)])
def test_metrics_schema_is_what_is_written(kind: str, record: type) -> None:
    """The fields that docs/metrics.md lists for one kind of line."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {kind} \|.*\|(.*)\|$", text, re.MULTILINE)
    written = {field.name for field in fields(record)} - {"step"}
    assert set(re.findall(r"`(\w+)`", row)) - {"null"} == written | ({"torch"} if kind == "start" else set())


def test_tasks_and_commands_are_those_that_there_are() -> None:
    """Every cell of the table in docs/tasks.md, held to what the commands take, and what training can begin from."""
    from regard.cli.check import UNCHECKED
    from regard.config import TASKS

    text = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    head, _, *rows = re.search(r"^\| \| `translate`.*?\n\n", text, re.MULTILINE | re.DOTALL)[0].split("\n")[:-2]
    columns = re.findall(r"`([\w-]+)`", head)
    served = {command: [name for name, one in TASKS.items() if command in one.commands] for command in columns}
    served["check"] = [name for name, one in TASKS.items() if one.learns_from not in UNCHECKED]
    served["--from"] = list(BEGUN)
    assert set(columns) == {"check", "--from", *(command for one in TASKS.values() for command in one.commands)}
    named = re.findall(r"^\| `([a-z][\w-]+)` \| [a-z]", text, re.MULTILINE)  # in the table of families
    assert [re.findall(r"`(.*?)`", row)[0] for row in rows] == named
    assert set(named) == set(TASKS)
    for row in rows:
        task, *cells = [cell.strip(" `") for cell in row.strip("|").split("|")]
        assert [bool(cell) for cell in cells] == [task in served[column] for column in columns], task


def test_links_to_the_lab_book_lead_to_its_entries() -> None:
    """The site has no lab book, so that its check of links does not see these; anchors are as GitHub makes them."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        for name, anchor in re.findall(r"\]\((lab/[\w.-]+)#?([^)]*)\)", path.read_text(encoding="utf-8")):
            titles = re.findall(r"^#+ (.*)$", (path.parent / name).read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in anchors | {""}, f"{path.name}: {name}#{anchor}"


def test_front_page_names_what_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in re.findall(r"\]\(([\w./-]+)\)", text) + re.findall(r"^(scripts/\w+)", text, re.MULTILINE):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize(("name", "least"), [("README.md", 4), ("docs/faq.md", 1), ("docs/troubleshooting.md", 0)])
def test_commands_exist(name: str, least: int) -> None:
    """Every ``regard ...`` line of a document names a command and options that are there."""
    from regard.cli import app

    lines = re.findall(r"^regard (?!--)(.+?)(?: +#.*)?$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= least
    for line in lines:
        app.parse_args(re.sub(r"[<>] \S+", "", line).strip(), exit_on_error=False, print_error=False)


def test_the_example_of_generating_is_run_and_its_files_exist() -> None:
    path = ROOT / "docs" / "generate.md"
    assert doctest.testfile(str(path), module_relative=False).failed == 0
    for name in re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", path.read_text(encoding="utf-8")):
        assert (ROOT / name).exists() or (ROOT / "src" / "regard" / name).exists(), name


def test_messages_of_troubleshooting_are_those_of_the_code() -> None:
    """Whatever stands between the places that vary (``…``) is part of one string of the source."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert len(messages) > 50
    strings = {
        node.value
        for path in (ROOT / "src" / "regard").rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    parts = {(message, part.strip()) for message in messages for part in message.split("…")}
    unknown = {both for both in parts if len(both[1]) > 3 and not any(both[1] in string for string in strings)}
    assert not unknown


def test_exit_codes_of_troubleshooting_are_those_of_the_errors() -> None:
    from regard.system import errors, interrupts

    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RegardError)]
    codes = {0, interrupts.INTERRUPTED, *(kind.exit_code for kind in kinds)}
    assert set(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE))) == codes
