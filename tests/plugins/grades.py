"""The grades of tests: quick ones by default, everything with --all, a seeded slice of the long ones with --slice.

Skips are listed at the end. Where CI runs (REGARD_CI set), a skip is a failure unless its reason names something
that the group "test" cannot bring: a gpu, a processor's feature, the data below REGARD_DATA, a browser, node.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

SLICE_SECONDS = 60.0
LONG_TIMEOUT = 1800
LOOKED_AT = 300
"""Parameters of a test from which the next one of the default grade is chosen."""
ALLOWED = re.compile(r"\b(gpu|cuda|processor|REGARD_DATA|browser|chromium|node|compiler)\b", re.IGNORECASE)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("regard")
    group.addoption("--all", action="store_true", help="run every test, the long ones too")
    group.addoption("--slice", metavar="SEED", help="run long tests in seeded order until a minute is spent")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Grades(config), "regard-grades")


def seeded_order(names: Sequence[str], seed: str) -> list[str]:
    """The names in an order that is a pure function of the seed and each name."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}\n{name}".encode()).digest())


def minutes(item: pytest.Item) -> float:
    """The minutes a long test says it takes; 0 if it does not say."""
    mark = item.get_closest_marker("long")
    assert mark is not None
    return float(mark.kwargs.get("minutes", mark.args[0] if mark.args else 0.0))


def thin(metafunc: pytest.Metafunc) -> None:
    """Makes long what ``one_of(n)`` leaves out of the default grade: of every n parameters of a test it keeps one."""
    of_all = metafunc.definition.get_closest_marker("one_of")
    groups: dict[tuple[int, float], list[Any]] = {}
    for call in metafunc._calls:
        mark = of_all or marked(call, "one_of")
        if mark is not None and not marked(call, "long"):
            groups.setdefault((mark.args[0], mark.kwargs.get("minutes", 0.01)), []).append(call)
    for (share, duration), calls in groups.items():
        kept = representative([call.id for call in calls], share, metafunc.definition.name)
        for call in calls:
            if call.id not in kept:
                call.marks.append(pytest.mark.long(minutes=duration).mark)


def representative(names: Sequence[str], share: int, test: str = "") -> set[str]:
    """One name in so many, a pure function of them: first those with the most words that no name before them has.

    Tests of the same parameters keep others of them.
    """
    left = seeded_order(names, f"representative {test}")
    count = -(-len(names) // share)
    kept: list[str] = []
    seen: set[tuple[int, str]] = set()
    while len(kept) < count:
        best = max(left[:LOOKED_AT], key=lambda name: len(words_of(name) - seen))
        if not words_of(best) - seen:
            break
        left.remove(best)
        kept.append(best)
        seen |= words_of(best)
    return {*kept, *left[: count - len(kept)]}


@cache
def words_of(name: str) -> frozenset[tuple[int, str]]:
    """The words between the hyphens of a name, with their places."""
    return frozenset(enumerate(name.split("-")))


def marked(call: Any, name: str) -> pytest.Mark | None:
    """The mark of this name that one choice of a test's parameters has."""
    return next((mark for mark in call.marks if mark.name == name), None)


def forbidden(reason: str) -> bool:
    """Whether CI should have been able to run a test that was skipped for this reason."""
    return not ALLOWED.search(reason)


class Grades:
    """Chooses which tests run, and judges the skips."""

    def __init__(self, config: pytest.Config) -> None:
        self.all: bool = config.getoption("--all")
        self.seed: str | None = config.getoption("--slice")
        self.started: float | None = None
        self.ran = self.left_out = 0
        self.skips: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> Iterator[None]:
        """Makes no items of parameters that the default grade leaves out: most of the time of collecting is theirs."""
        yield
        thin(metafunc)
        if not self.all and self.seed is None and metafunc._calls:
            whole = metafunc.definition.get_closest_marker("long")
            quick = [] if whole else [call for call in metafunc._calls if not marked(call, "long")]
            metafunc._calls = quick or metafunc._calls[:1]  # without one the test would lack its arguments

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        long = [item for item in items if item.get_closest_marker("long")]
        for item in long:
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(LONG_TIMEOUT))
        if self.all:
            return
        if self.seed is None:
            chosen = [item for item in items if not item.get_closest_marker("long")]
        else:
            by_name = {item.nodeid: item for item in long}
            chosen = [by_name[name] for name in seeded_order(list(by_name), self.seed)]
        kept = {item.nodeid for item in chosen}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = chosen

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if self.seed is None:
            return None
        self.started = self.started or time.monotonic()
        left = SLICE_SECONDS - (time.monotonic() - self.started)
        if left <= 60.0 * minutes(item):
            self.left_out += 1
            item.session._setupstate.teardown_exact(nextitem)  # the test before left this one's module standing for it
            return True
        self.ran += 1
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = str(report.longrepr[2])
            if forbidden(reason):
                self.skips.append(f"{report.nodeid}: {reason}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple) and forbidden(str(report.longrepr[2])):
            self.skips.append(f"{report.nodeid}: {report.longrepr[2]}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.seed is not None and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if self.skips and os.environ.get("REGARD_CI") and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.seed is not None:
            total = self.ran + self.left_out
            terminalreporter.write_line(f"slice {self.seed}: {self.ran} of {total} long tests")
        if self.skips and os.environ.get("REGARD_CI"):
            terminalreporter.section("skipped, though the group test brings what is needed: an error in CI", red=True)
            for line in self.skips:
                terminalreporter.write_line(line)
