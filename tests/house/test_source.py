"""Rules that every file keeps: no pickle, no paper without its reference, no path of a machine."""

import ast
import importlib
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable
from pathlib import Path

from tests.house.trees import nodes

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "src").rglob("*.py"))
REFUSED_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
REFUSED_CALLS = {"eval", "exec", "torch.load", "torch.save", "np.load", "numpy.load"}
KEY = re.compile(r"\b[A-Z][a-z]+\d{2}[a-z]?\b")
DEFINED = re.compile(r"^\* \*\*([A-Z][a-z]+\d{2}[a-z]?)\*\*", re.MULTILINE)


def papers_cited(source: str) -> set[str]:
    """Keys such as ``Vaswani17`` inside square brackets, in strings and comments."""
    found: set[str] = set()
    if not KEY.search(source):
        return found
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            for bracket in re.findall(r"\[([^\[\]]*)\]", token.string):
                found |= set(KEY.findall(bracket))
    return found


def dangers(source: Iterable[ast.AST]) -> list[str]:
    """Calls and imports through which a file could run code."""
    found: list[str] = []
    for node in source:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in REFUSED_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in REFUSED_MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in REFUSED_CALLS:
            allows_no_pickle = "allow_pickle=False" in map(ast.unparse, node.keywords)
            if not (ast.unparse(node.func).endswith("p.load") and allows_no_pickle):
                found.append(ast.unparse(node.func))
    return found


def test_papers_cited_are_found() -> None:
    source = '"""The loss [Szegedy16 §7; Ba16]."""  # as in [Wu16]\nx["T"]\nfoo[Bar17]'
    assert papers_cited(source) == {"Szegedy16", "Ba16", "Wu16"}


def test_every_paper_cited_has_its_reference() -> None:
    known = set(DEFINED.findall((ROOT / "docs" / "papers.md").read_text(encoding="utf-8")))
    assert "Vaswani17" in known
    cited = {path: papers_cited(path.read_text(encoding="utf-8")) for path in FILES}
    assert set().union(*cited.values()), "the source cites no paper at all"
    unknown = {str(path.relative_to(ROOT)): sorted(keys - known) for path, keys in cited.items() if keys - known}
    assert not unknown, f"add to docs/papers.md: {unknown}"


def test_dangers_are_found() -> None:
    safe = "np.load(f, allow_pickle=False)\nmodel.eval()\n"
    source = safe + "import pickle.x\nfrom dill import a\ntorch.load(f)\neval('1')\nnp.load(f)"
    assert sorted(dangers(ast.walk(ast.parse(source)))) == ["dill", "eval", "np.load", "pickle.x", "torch.load"]


def test_no_file_runs_code_from_data() -> None:
    for path in FILES:
        assert dangers(nodes(path)) == [], path


def test_nothing_is_a_stub() -> None:
    for path in FILES:
        raised = [node.exc for node in nodes(path) if isinstance(node, ast.Raise)]
        assert not any(exc and "NotImplementedError" in ast.unparse(exc) for exc in raised), path


def test_paper_map_names_what_exists() -> None:
    text = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    named = re.findall(r"`(regard[\w.]*)(?::([\w.]+))?`", text)
    assert named
    for module, symbol in named:
        found = importlib.import_module(module)
        for part in filter(None, symbol.split(".")):
            found = getattr(found, part)


def test_no_path_of_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:  # not a clone, but an unpacked archive
        tracked = [str(path.relative_to(ROOT)) for path in FILES]
    path_of_a_home = re.compile(r"(?<![\w.])/(home|Users|root)/\w")
    for name in tracked:
        if name.endswith((".py", ".md", ".toml", ".txt")) and (ROOT / name).is_file():
            found = path_of_a_home.search((ROOT / name).read_text(encoding="utf-8"))
            assert not found, f"{name}: {found.group(0) if found else ''}"
