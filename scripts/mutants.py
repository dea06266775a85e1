"""Makes the same seeded mutants in two trees, and says which are killed by the tests of each.

A reorganisation must not weaken the tests: what they noticed before it, they notice after it.

    git worktree add /elsewhere/before COMMIT
    python scripts/mutants.py /elsewhere/before . --seed 1 --count 60 --results mutants.jsonl

A mutant is one small change of one statement: a comparison or an operator turned round, ``and`` for ``or``, a constant
plus one, a condition negated, a call left out, None returned. Statements that both trees have are candidates: the same
text (names of modules stripped) in a function, once in each tree, in whatever file. The seed draws among them.

The tests of its file run, the module that mirrors its path first, then those that import it, as many as fit
``--seconds`` without the mutant. A mutant is ``killed`` by the first module that fails or takes three times as long as
without it, else it ``survived``; ``untested``: no module passes and fits. They are drawn until ``--count`` are killed
before. Only those are tried after, with six times ``--seconds``; the test that killed them before runs first. Copies of
the tracked files are changed, never the trees. A line of JSON is kept for each mutant: run the same command again to
resume; it also tries those again that survived after. Give another tree another file. Exit code 1 if a mutant that was
killed before survives after.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = "regard"
Node = ast.stmt | ast.expr
SHORTEST = 12
"""Characters of a statement that can be told from others."""
PATIENCE = 6
"""Times ``--seconds`` for the tests of a mutant after: one that survives there has to be sure."""
SLACK = 20.0
"""Seconds that a run with a mutant may take beyond three times the run without it."""
COMPARED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARED |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult}


class Tree:
    """A copy of a tree's tracked files, in which mutants are tried."""

    def __init__(self, root: Path, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        found: dict[str, list[tuple[Path, Node]]] = {}
        for path in sorted((folder / "src").rglob("*.py")):
            for text, node in statements(ast.parse(path.read_text(encoding="utf-8"))):
                if len(text) >= SHORTEST and mutants(node):
                    found.setdefault(text, []).append((path, node))
        self.statements = {text: several[0] for text, several in found.items() if len(several) == 1}
        self.tests = {path: path.read_text(encoding="utf-8") for path in sorted((folder / "tests").rglob("test_*.py"))}
        self._alone: dict[Path, tuple[int | None, float]] = {}

    def files_for(self, path: Path) -> list[Path]:
        """Test files of a source file, the nearest first."""
        inside = path.relative_to(self.folder / "src" / PACKAGE).with_suffix("")
        module = ".".join([PACKAGE, *inside.parts]).removesuffix(".__init__")
        above, _, last = module.rpartition(".")
        imports = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(above)} import [^\n]*\b{last}\b")

        def near(test: Path) -> int:
            mirrors = test.parent == self.folder / "tests" / inside.parent
            if mirrors and test.stem == f"test_{last}":
                return 0
            return (1 if mirrors else 2) if imports.search(self.tests[test]) else 3 if mirrors else 4

        return [test for test in sorted(self.tests, key=near) if near(test) < 4]

    def run(self, test: Path, limit: float) -> tuple[int | None, float]:
        """The exit code of pytest (None: out of time), and its seconds."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(test)]
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        begun = time.monotonic()
        null = subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=null, stderr=null, process_group=0
        ) as run:
            try:
                return run.wait(limit), time.monotonic() - begun
            except subprocess.TimeoutExpired:
                return None, limit
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)  # and what it started

    def attempt(self, key: str, number: int, first: str = "") -> dict[str, Any]:
        """What becomes of mutant ``number`` of a statement: its place, the result, and the tests that ran.

        ``first``: a test file that runs before the others, if this tree has it.
        """
        path, node = self.statements[key]
        source, result, tests, spent = path.read_bytes(), "untested", list[str](), 0.0
        for test in dict.fromkeys([*filter(self.tests.__contains__, [self.folder / first]), *self.files_for(path)]):
            if test not in self._alone:
                self._alone[test] = self.run(test, self.seconds)
            code, alone = self._alone[test]
            if code == 0 and spent + alone <= self.seconds:
                path.write_bytes(with_mutant(source, node, mutants(node)[number]))
                try:
                    code, _ = self.run(test, 3 * alone + SLACK)
                finally:
                    path.write_bytes(source)
                tests, spent = [*tests, str(test.relative_to(self.folder))], spent + alone
                result = "survived" if code == 0 else "killed"
            if result == "killed" or spent > self.seconds / 2:
                break
        return {"where": f"{path.relative_to(self.folder)}:{node.lineno}", "result": result, "tests": tests}


def statements(tree: ast.Module) -> Iterator[tuple[str, Node]]:
    """The statements of all functions, and their text; of a compound one its condition."""
    names = [name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names]
    modules = {(name.asname or name.name).split(".")[0] for name in names}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    nodes = {id(node): node for function in functions for part in function.body for node in ast.walk(part)}
    for node in nodes.values():
        if isinstance(node, ast.If | ast.While):
            yield f"{type(node).__name__} {text_of(node.test, modules)}", node.test
        elif isinstance(node, ast.Return | ast.Assign | ast.AugAssign | ast.Expr | ast.AnnAssign):
            yield text_of(node, modules), node


def text_of(node: ast.AST, modules: set[str]) -> str:
    """The text of a node without the names of modules, so that it is the same after a move."""

    class Stripped(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            inner = self.visit(node.value)
            if isinstance(inner, ast.Name) and inner.id in modules and inner.id.islower():
                return ast.Name(node.attr)
            return ast.Attribute(inner, node.attr)

    return ast.unparse(Stripped().visit(copy.deepcopy(node)))


def mutants(node: Node) -> list[ast.AST]:
    """All mutants of a statement or condition, in an order that a move does not change."""
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
        return []
    found: list[ast.AST] = []
    for place, inner in enumerate(ast.walk(node)):
        if flip(copy.copy(inner)):
            found.append(copy.deepcopy(node))
            flip(list(ast.walk(found[-1]))[place])
    if isinstance(node, ast.expr):
        found.append(ast.UnaryOp(ast.Not(), node))
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        found.append(ast.Return(ast.Constant(None)))
    elif isinstance(node, ast.AugAssign | ast.Expr):
        found.append(ast.Pass())
    return found


def flip(node: Any) -> bool:
    """Change one node, if it is of a kind that can be; its children stay as they are."""
    if isinstance(node, ast.Compare):
        node.ops = [COMPARED[type(node.ops[0])](), *node.ops[1:]]
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMPUTED:
        node.op = COMPUTED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    else:
        return False
    return True


def with_mutant(source: bytes, node: Node, mutant: ast.AST) -> bytes:
    """The source with the node's text replaced; columns count bytes."""
    starts = [0, *(end.end() for end in re.finditer(rb"\n", source))]
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    text = ast.unparse(ast.fix_missing_locations(mutant))
    return source[:begin] + (f"({text})" if isinstance(node, ast.expr) else text).encode() + source[end:]


def show(row: dict[str, Any]) -> None:
    """A line of the table: what became of a mutant before and after, and what it is."""
    last = row.get("after", row["before"] | {"result": ""})
    what = f"{row['statement'][:60]!r} → {row['changed to'][:60]!r}"
    print(f"{row['mutant']}  {row['before']['result']:9} {last['result']:9} {last['where']}  {what}", flush=True)


def main() -> int:
    """Try mutants, and print those that were killed before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="mutants that are killed before")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for one mutant")
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    asked = parser.parse_args()
    done = asked.results.read_text(encoding="utf-8").splitlines() if asked.results.exists() else []
    rows: dict[str, dict[str, Any]] = {row["mutant"]: row for row in map(json.loads, done)}
    killed: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as work:
        before = Tree(asked.before.resolve(), Path(work) / "before", asked.seconds)
        after = Tree(asked.after.resolve(), Path(work) / "after", PATIENCE * asked.seconds)
        shared = before.statements.keys() & after.statements.keys()
        print(f"{len(shared):,} statements are in both trees", flush=True)
        drawn = {hashlib.sha256(f"{asked.seed} {key}".encode()).hexdigest(): key for key in shared}
        for digest, key in sorted(drawn.items()):
            if len(killed) == asked.count:
                break
            choices = mutants(before.statements[key][1])
            name, number = digest[:12], int(digest, 16) % len(choices)
            row = rows.get(name) or {"mutant": name, "statement": key, "changed to": ast.unparse(choices[number])}
            if "before" not in row:
                row["before"] = before.attempt(key, number)
            again = row["before"]["result"] == "killed" and row.get("after", {}).get("result") != "killed"
            if again:
                row["after"] = after.attempt(key, number, row["before"]["tests"][-1])
            if again or name not in rows:
                with asked.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            show(row)
            if row["before"]["result"] == "killed":
                killed.append(row)

    kept = sum(row["after"]["result"] == "killed" for row in killed)
    print(f"{len(killed)} mutants killed before, {kept} of them after")
    return int(kept < len(killed))


if __name__ == "__main__":
    sys.exit(main())
