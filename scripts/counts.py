"""Counts of the house: files, lines, rooms, import circles, names and tests; a column for each tree that is named.

    python scripts/counts.py                    # the tree this script stands in
    python scripts/counts.py . /tmp/before      # two trees side by side

Counts, not laws: it always exits 0. How each is taken stands at its function.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "regard"
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
    found = circles(imports(trees, packages))
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
        f"files under {SMALL} lines of code": f"{sum(_small(path, count) for path, count in lines.items()):,}",
        "functions named by a participle": f"{participles(trees):,}",
        "tests that match English": f"{sum(matches_english(*one) for one in called):,}",
        "tests with any match": f"{sum(pattern(call) is not None for call, _ in called):,}",
        "calls of pytest.raises": f"{len(called):,}",
        "lines of tests": f"{sum(len(text.splitlines()) for text in tests):,}",
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


def main() -> None:
    """Print the table; with ``--circles`` the modules of each circle behind it."""
    parser = argparse.ArgumentParser(description="counts of the house")
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT], help="trees; default: where this script stands")
    parser.add_argument("--circles", action="store_true", help="name the modules of each import circle, too")
    asked = parser.parse_args()
    roots: list[Path] = asked.paths
    for root in roots:
        if not (root / "src" / PACKAGE).is_dir():
            parser.error(f"{root} holds no src/{PACKAGE}")
    print("\n".join(table({str(root): counts(root) for root in roots})))
    for root in roots if asked.circles else []:
        for circle in circles(imports(*modules(root))):
            print(f"{root}: {' '.join(circle)}")


if __name__ == "__main__":
    main()
