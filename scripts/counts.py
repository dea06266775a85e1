"""Counts of the house: files, lines, rooms, import circles, names and tests; a column for each tree that is named.

    python scripts/counts.py                    # the tree this script stands in
    python scripts/counts.py . /tmp/before      # two trees side by side
    python scripts/counts.py --budget           # exit 1 where a count is above scripts/budget.toml

How each is taken stands at its function. A commit that raises the budget says what that buys.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "regard"
BUDGET = ROOT / "scripts" / "budget.toml"
MODULE = re.compile(rf"{PACKAGE}(?:\.\w+)+(?::\w+)?")
"""A string that names a module, or ``module:name``: an import that no import statement shows."""
COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
SMALL = 25
"""A file of fewer lines of code is small."""
NO_ENTRY = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
NO_PARTICIPLE = set("embed feed seed speed need bed red shed reseed hundred".split())
"""Words that end in "ed" and are none."""
IRREGULAR = set(
    """begun bent bound broken brought built chosen done drawn driven fallen fed felt found given gone grown heard held
    hidden hit kept known laid learnt led left lent lost made meant met paid read said seen sent shorn shown shut spelt
    spoken spent spun sold stood sworn taken taught thought told torn understood unread unspelt upset won worn written
    unseen unheard""".split()
)
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
ENGLISH = re.compile(r"(?<![A-Za-z\\])[A-Za-z]+ +[A-Za-z]+")
"""Two words of letters with blanks between them; what a backslash begins, as in a pattern, is no word."""

Edges = Mapping[str, set[str]]


def docstrings(tree: ast.AST) -> set[int]:
    """The lines of every bare string: docstrings of modules, classes and functions, and those below a variable."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def code(text: str) -> int:
    """Lines of code: all that hold a token, imports included, but comments, blank lines and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE and token.string:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings(ast.parse(text)))


def largest_room(package: Path) -> tuple[int, str]:
    """Entries, files and folders alike, of the folder of the package that has the most, and its name."""
    rooms = [package, *(path for path in package.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    sizes = [(sum(entry.name not in NO_ENTRY for entry in room.iterdir()), room) for room in rooms]
    most, room = max(sizes, key=lambda one: one[0])
    return most, room.relative_to(package.parent).as_posix()


def modules(root: Path) -> tuple[dict[str, ast.Module], set[str]]:
    """The syntax of every module of a tree by its dotted name, and which of them are packages."""
    source = root / "src"
    paths = sorted(source.rglob("*.py"))
    trees = {module_name(path, source): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    return trees, {module_name(path, source) for path in paths if path.name == "__init__.py"}


def module_name(path: Path, source: Path) -> str:
    """The dotted name of a file; of a package's ``__init__`` that of the package."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(trees: Mapping[str, ast.Module], packages: set[str]) -> dict[str, set[str]]:
    """The modules of the package that each imports, wherever in it.

    ``from package import name`` is an import of the module ``package.name`` if there is one, else of the package's
    ``__init__``. What stands above a module is not imported with it.
    """
    found: dict[str, set[str]] = {}
    for module, tree in trees.items():
        names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                origin = _origin(node, module, module in packages)
                for alias in node.names:
                    inside = f"{origin}.{alias.name}"
                    names.add(inside if inside in trees else origin)
        found[module] = {name for name in names if name in trees and name != module}
    return found


def _origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The absolute name of what an import is from."""
    if not node.level:
        return node.module or ""
    above = module.split(".")
    kept = above[: len(above) - node.level + is_package]
    return ".".join([*kept, *filter(None, [node.module])])


def named_modules(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """The modules that each names by a string; a name that stands in two strings counts twice."""
    found: dict[str, list[str]] = {}
    for module, tree in trees.items():
        texts = (
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        names = [text.partition(":")[0] for text in texts if MODULE.fullmatch(text)]
        found[module] = [name for name in names if name in trees and name != module]
    return found


def with_strings(edges: Edges, named: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """Imports and strings together; the public names of the package itself lead everywhere, and are left out."""
    found = {module: {*names, *named[module]} - {PACKAGE} for module, names in edges.items()}
    del found[PACKAGE]
    return found


def rows(root: Path) -> dict[str, int]:
    """The row of each package in the import contract, the lowest first."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(one["layers"] for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return {name: row for row, layer in enumerate(reversed(layers)) for name in re.findall(r"\w+", layer)}


def package_of(module: str) -> str:
    """The package below the top one that a module is in; the top one's ``__init__`` is in none."""
    return module.partition(".")[2].partition(".")[0]


def upward(root: Path, named: Mapping[str, list[str]]) -> int:
    """Strings that name a module of a higher row than the one they stand in; the public names may."""
    row = rows(root)
    return sum(
        row.get(package_of(name), 0) > row[package_of(module)]
        for module, names in named.items()
        for name in names
        if package_of(module) in row
    )


def functions(trees: Mapping[str, ast.Module]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods, nested ones included."""
    nodes = (node for tree in trees.values() for node in ast.walk(tree))
    return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def has_one_statement(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is one simple statement, its docstring left out."""
    body = node.body[ast.get_docstring(node, clean=False) is not None :]
    return len(body) == 1 and not isinstance(body[0], COMPOUND)


def used_once(trees: Mapping[str, ast.Module], defined: Sequence[ast.FunctionDef | ast.AsyncFunctionDef]) -> int:
    """Functions whose name is read once in the package, as a name or an attribute; each definition counts."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    uses.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
    return sum(uses[node.name] == 1 for node in defined)


def code_of(folder: Path) -> tuple[int, int]:
    """Files and lines of code below a folder."""
    paths = sorted(folder.rglob("*.py"))
    return len(paths), sum(code(path.read_text(encoding="utf-8")) for path in paths)


def circles(edges: Edges) -> list[list[str]]:
    """The strongly connected components of more than one module, the largest first.

    Two modules are in one if each reaches the other.
    """
    reach = {module: _reached(module, edges) for module in edges}
    left, found = set(edges), []
    for module in sorted(edges):
        if module not in left:
            continue
        circle = {other for other in reach[module] if module in reach[other]} | {module}
        left -= circle
        if len(circle) > 1:
            found.append(sorted(circle))
    return sorted(found, key=lambda circle: (-len(circle), circle))


def _reached(module: str, edges: Edges) -> set[str]:
    """All modules that imports lead to from this one."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for name in edges[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def is_participle(name: str) -> bool:
    """Whether a function's name is a bare participle: one word, the underscores around it left out."""
    word = name.strip("_")
    if "_" in word or word in NO_PARTICIPLE:
        return False
    return word.endswith("ed") or word in IRREGULAR


def participles(trees: Mapping[str, ast.Module]) -> int:
    """Functions and methods, nested ones included, whose name is a bare participle; each definition counts."""
    nodes = (node for tree in trees.values() for node in ast.walk(tree))
    return sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name) for node in nodes)


def raises(tree: ast.Module) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
    """Every call of ``pytest.raises`` or ``raises``, and where names in it get their values: module and functions."""

    def below(node: ast.AST, scopes: list[ast.AST]) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "raises":
            yield node, scopes
        inner = [*scopes, node] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else scopes
        for child in ast.iter_child_nodes(node):
            yield from below(child, inner)

    return below(tree, [tree])


def pattern(call: ast.Call) -> ast.expr | None:
    """What is given for ``match=``."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == "match"), None)


def matches_english(call: ast.Call, scopes: list[ast.AST]) -> bool:
    """Whether its ``match=`` holds :data:`ENGLISH`.

    Every string written in the argument is looked at by itself, the pieces of an f-string too. A name stands for what
    ``parametrize`` gives it (one text in English suffices) or is assigned to it in the function or the module; what is
    computed elsewhere, such as a fixture, is not followed, nor is a name in what a name stands for.
    """
    value = pattern(call)
    if value is None:
        return False
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    nodes = [value, *(node for scope in scopes for name in names for node in _given(name, scope))]
    return any(ENGLISH.search(text.replace("\\ ", " ")) for node in nodes for text in _texts(node))


def _texts(node: ast.AST) -> list[str]:
    """The strings written in an expression."""
    return [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _given(name: str, scope: ast.AST) -> Iterator[ast.AST]:
    """What a name stands for: the right sides of its assignments in a scope, its column of ``parametrize``."""
    for node in getattr(scope, "body", []):
        if isinstance(node, ast.Assign) and name in (ast.unparse(target) for target in node.targets):
            yield node.value
    for decorator in getattr(scope, "decorator_list", []):
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(".parametrize"):
            names = re.findall(r"\w+", " ".join(_texts(decorator.args[0])))
            if name in names:
                yield from _column(decorator.args[1], names.index(name), len(names))


def _column(rows: ast.AST, place: int, columns: int) -> Iterator[ast.AST]:
    """The values of one name of ``parametrize``; the whole rows where they are not written as such."""
    if not isinstance(rows, ast.List | ast.Tuple):
        yield rows
        return
    for row in rows.elts:
        cells = row.args if isinstance(row, ast.Call) else row.elts if isinstance(row, ast.Tuple | ast.List) else [row]
        yield cells[place] if columns > 1 and len(cells) == columns else row


def counts(root: Path) -> dict[str, str]:
    """Every count of a tree, as it is shown."""
    trees, packages = modules(root)
    edges, named = imports(trees, packages), named_modules(trees)
    found = circles(edges)
    defined, whole_tests = functions(trees), code_of(root / "tests")
    hidden = circles(with_strings(edges, named))
    across = [(one, other) for one in edges for other in edges[one]]
    lines = {path: code(path.read_text(encoding="utf-8")) for path in sorted((root / "src").rglob("*.py"))}
    most, room = largest_room(root / "src" / PACKAGE)
    tests = [path.read_text(encoding="utf-8") for path in sorted((root / "tests").rglob("*.py"))]
    called = [one for text in tests for one in raises(ast.parse(text))]
    return {
        "files of src": f"{len(lines):,}",
        "lines of code in src": f"{sum(lines.values()):,}",
        "entries of the largest room": f"{most:,} ({room})",
        "import circles": f"{len(found):,}",
        "modules in import circles": f"{sum(map(len, found)):,}",
        "import circles, with strings": f"{len(hidden):,}",
        "imports across packages": f"{sum(package_of(one) != package_of(other) for one, other in across):,}",
        "strings that name a higher row": f"{upward(root, named):,}",
        "functions": f"{len(defined):,}",
        "functions of one statement": f"{sum(map(has_one_statement, defined)):,}",
        "functions named once": f"{used_once(trees, defined):,}",
        "Any": f"{sum(isinstance(n, ast.Name) and n.id == 'Any' for t in trees.values() for n in ast.walk(t)):,}",
        f"files under {SMALL} lines of code": f"{sum(_small(path, count) for path, count in lines.items()):,}",
        "functions named by a participle": f"{participles(trees):,}",
        "tests that match English": f"{sum(matches_english(*one) for one in called):,}",
        "tests with any match": f"{sum(pattern(call) is not None for call, _ in called):,}",
        "calls of pytest.raises": f"{len(called):,}",
        "files of tests": f"{whole_tests[0]:,}",
        "lines of code in tests": f"{whole_tests[1]:,}",
        "lines of code in benchmarks": f"{code_of(root / 'benchmarks')[1]:,}",
    }


def _small(path: Path, lines: int) -> bool:
    return lines < SMALL and path.name != "__init__.py"


def table(columns: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """A line for each count and a column for each tree, numbers to the right."""
    rows = [["", *columns]]
    rows += [[name, *(column[name] for column in columns.values())] for name in next(iter(columns.values()))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells])


def over_budget(found: Mapping[str, str]) -> list[str]:
    """A line for each count above its limit."""
    limits = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    numbers = {name: int(found[name].partition(" ")[0].replace(",", "")) for name in limits}
    return [
        f"{name}: {numbers[name]:,}, the budget is {limit:,}; make it smaller, or raise the budget with its reason"
        for name, limit in limits.items()
        if numbers[name] > limit
    ]


def main() -> None:
    """Print the table; with ``--circles`` the modules of each circle behind it; with ``--budget`` what exceeds it."""
    parser = argparse.ArgumentParser(description="counts of the house")
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT], help="trees; default: where this script stands")
    parser.add_argument("--circles", action="store_true", help="name the modules of each import circle, too")
    parser.add_argument("--budget", action="store_true", help="exit 1 where a count is above the budget")
    asked = parser.parse_args()
    roots: list[Path] = asked.paths
    if asked.budget:
        lines = over_budget(counts(ROOT))
        print("\n".join(lines) or "within the budget")
        sys.exit(1 if lines else 0)
    for root in roots:
        if not (root / "src" / PACKAGE).is_dir():
            parser.error(f"{root} holds no src/{PACKAGE}")
    print("\n".join(table({str(root): counts(root) for root in roots})))
    for root in roots if asked.circles else []:
        trees, packages = modules(root)
        for circle in circles(with_strings(imports(trees, packages), named_modules(trees))):
            print(f"{root}: {' '.join(circle)}")


if __name__ == "__main__":
    main()
