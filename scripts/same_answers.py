"""Prints a sha256 of what small models answer: the page's answers and the commands' stdout, by the engine and by torch.

A reorganisation must not change answers: print the list before it, and compare after it, with the same models.

    python scripts/same_answers.py build/models > before.txt
    python scripts/same_answers.py build/models --expect before.txt

The first call trains the models, those of ``same_bits.py``, into the folder; others read them, as folders of an
earlier Regard. A line is a model's name, what it was asked, and the sum of the answer. Tokens of a search are among
them (``--json`` has pieces and ids). As in ``same_bits.py``, nothing is relied on that may move: the command line,
HTTP, and files. What an answer is called on the wire may change: :data:`RENAMED`. It takes minutes of one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import same_bits

TEXTS, NEIGHBOURS = 8, 3
"""Lines that a command gets; of them, texts that a page is asked about."""
RENAMED: dict[str, str] = {}
"""Old name → new name of endpoints."""
MADE = {"weights", "folder", "name", "seconds", "minutes"}
"""Fields of answers that depend on where and when a model was made."""
PAIRED = {"translation", "recurrent-translation", "text-to-text"}
COMMANDS = {
    "translation": ["translate", "translate --json", "translate --beam 3 --nbest 2", "attend --json", "attend --table"],
    "recurrent-translation": ["translate --json", "attend --json", "attend --table"],
    "text-to-text": ["ask --prefix to --json", "ask --prefix to --sample --temperature 0.8 --seed 3", "attend --json"],
    "classification": ["classify --all", "classify --json", "encode", "attend --json", "attend --table"],
    "recurrent-classification": ["classify --json", "encode", "attend --json"],
    "tagging-crf": ["tag --words", "tag --json", "tag --conll", "attend --json"],
    "language-model": ["generate --json --seed 3", "generate --max-tokens 20 --temperature 0", "attend --json"],
    "masked-words": ["fill --json", "encode --pool mean", "attend --json"],
    "images": [],
}
"""Model of ``same_bits.py`` → commands that answer its texts."""
SCORES = {
    "translation": "--source pairs.en --reference pairs.de",
    "text-to-text": "--test prefixed.tsv",
    "classification": "--test labels.csv",
    "tagging-crf": "--test tags.conll",
    "language-model": "--test texts.txt",
    "masked-words": "--test texts.txt",
    "images": "--test images.csv",
}
"""Model → the data that ``evaluate`` scores it on."""
STACKS = {"translation": ("encoder", "decoder"), "text-to-text": ("encoder", "decoder"), "language-model": ("decoder",)}
"""Model → its stacks of layers; others have an encoder alone."""


def lines_for(name: str, folder: Path) -> list[str]:
    """Texts of a model's own training data."""
    files = {"text-to-text": "pairs.en", "language-model": "texts.txt", "masked-words": "texts.txt"}
    if name in ("classification", "recurrent-classification"):
        return [line.rpartition(",")[0] for line in _lines(folder / "labels.csv")[1 : TEXTS + 1]]
    if name == "tagging-crf":
        blocks = (folder / "tags.conll").read_text(encoding="utf-8").split("\n\n")[:TEXTS]
        return [" ".join(line.split("\t")[0] for line in block.splitlines() if line) for block in blocks]
    found = _lines(folder / files.get(name, "pairs.en"))[:TEXTS]
    if name == "masked-words":
        return [" ".join(["[MASK]" if at % 5 == 2 else word for at, word in enumerate(text.split())]) for text in found]
    return [" ".join(text.split()[:6]) for text in found] if name == "language-model" else found


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def command_lines(name: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """What each command of a model is called, and its stdout."""
    texts = lines_for(name, folder) if name != "images" else []
    (folder / "input.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    for kernels in ("", "off"):
        way = "torch" if kernels else "engine"
        for command in COMMANDS[name]:
            word, *options = command.split()
            if word == "attend" and kernels:
                continue  # always by torch
            given = [] if "--table" in options else [texts[0]] if word == "attend" else ["--input", "input.txt"]
            if "--table" in options:
                given = ["--input", "input.txt"] if "--input" in _help(word) else texts
            yield f"{way}: {command}", _run([word, name, *options, *given, "--threads", "1"], folder, kernels)
        if name in SCORES:
            command = f"evaluate {name} {SCORES[name]} --json --threads 1"
            yield f"{way}: evaluate", _run(command.split(), folder, kernels)
    yield "info", _run(["info", name, "--json"], folder, "")
    if name == "images":
        yield "classify", _run(["classify", name, "--input", "images.csv", "--json"], folder, "")
        yield "attend", _run(["attend", name, "images.csv", "--image", "2", "--json"], folder, "")


def _help(word: str) -> str:
    return _run([word, "--help"], same_bits.ROOT, "").decode()


def _environment(kernels: str) -> dict[str, str]:
    paths = [str(same_bits.ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    return {**found, "REGARD_KERNELS": kernels} if kernels else found


def _run(words: list[str], folder: Path, kernels: str) -> bytes:
    """The stdout of a command; what it says on stderr is shown only if it fails."""
    command = [sys.executable, "-m", "regard", *words]
    done = subprocess.run(command, cwd=folder, env=_environment(kernels), capture_output=True)
    if done.returncode:
        sys.exit(f"regard {shlex.join(words)}\nended with {done.returncode}:\n{done.stderr.decode()}")
    return done.stdout


def questions(name: str, texts: list[str], targets: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the page is asked of a model: endpoints, as they were first called, and their fields."""
    kinds = ["encoder", "decoder", "cross"] if name in ("translation", "text-to-text") else ["encoder"]
    kinds = {"language-model": ["decoder"], "recurrent-translation": ["cross"], "recurrent-classification": []}.get(
        name, kinds
    )
    start = "to\t" if name == "text-to-text" else ""
    for at, text in enumerate(texts[:NEIGHBOURS]):
        scene: dict[str, Any] = {"image": {"number": at}} if name == "images" else {"text": start + text}
        yield "look", scene
        if name in PAIRED:
            yield "look", {**scene, "target": targets[at]}
            yield "tree", {**scene, "beam": 3}
        for kind in kinds:
            yield "look", {**scene, "changes": {"off": [[kind, 1, 1]]}}
            yield "head", {**scene, "kind": kind, "merge": "rollout"}
            yield "row", {**scene, "kind": kind, "places": [1]}
            if kind != "pool":
                yield "equation", {**scene, "kind": kind, "layer": 1, "head": 1, "query": 1}
        yield "layers", scene
        if name != "images":
            for method in ("gradient_x_input", "integrated_gradients"):
                yield "owes", {**scene, "place": 1, "method": method}
            yield "owes", scene
            yield "distribution", {**scene, "place": 1, "temperature": 0.7, "top_k": 5}
        yield "needs", {**scene, "places": [1]}
        yield "needs", scene
    for stack in STACKS.get(name, ("encoder",)):
        yield "places", {"stack": stack, "count": 8}
        if name != "images":
            yield "drift", {"stack": stack, "scenes": [{"text": text} for text in texts[:2]], "pair": [[0, 0], [1, 0]]}
    yield "heads", {}
    if name == "images":
        yield "images", {"count": 4}
        return
    for side in ("source", "target") if name in PAIRED else ("source",):
        yield "near", {"side": side, "text": texts[0].split()[0], "count": 6}
        yield "map", {"side": side, "count": 40}
        yield "vectors", {"side": side, "texts": [text.split()[0] for text in texts[:2]]}
    if name in (*PAIRED, "language-model"):
        yield "write", {"text": start + texts[0], "temperature": 0.8, "seed": 3, "most": 12}
    for form in ("svg", "html", "json"):
        yield "export", {"text": texts[0], "form": form}


def page_lines(name: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each question of the page, and its answer; a refusal is an answer, too."""
    texts = lines_for(name, folder) if name != "images" else ["", "", ""]
    targets = _lines(folder / "pairs.de")
    with _server(name, folder) as address:
        for endpoint, fields in questions(name, texts, targets):
            yield f"page: {endpoint} {json.dumps(fields, ensure_ascii=False)}", _ask(address, endpoint, fields)


@contextmanager
def _server(name: str, folder: Path) -> Iterator[str]:
    """The page of a model, on a free port; its address."""
    command = [sys.executable, "-m", "regard", "explore", name, "--port", "0", "--no-browser", "--threads", "1"]
    command += ["--images", "images.csv"] if name == "images" else []
    server = subprocess.Popen(
        command, cwd=folder, env=_environment(""), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        said = ""
        for line in server.stdout or ():
            said += line
            if "http://" in line:
                yield "http://" + line.partition("http://")[2].split()[0].rstrip("/.")
                return
        sys.exit(f"the page of {name} did not start:\n{said}")
    finally:
        server.kill()
        server.wait()


def _ask(address: str, endpoint: str, fields: dict[str, Any]) -> bytes:
    """An answer without :data:`MADE`; of an error its status and the field it names."""
    url = f"{address}/api/{RENAMED.get(endpoint, endpoint)}"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(fields).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            content, kind = answer.read(), answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}".encode()
    if kind == "application/octet-stream":
        (size,) = struct.unpack("<I", content[:4])
        begin = 4 + size + (-(4 + size) % 8)
        return _values(content[4 : 4 + size]) + content[begin:]
    if kind == "application/x-ndjson":
        return b"\n".join(map(_values, content.splitlines()))
    return content


def _values(text: bytes) -> bytes:
    values = json.loads(text)
    return json.dumps({name: value for name, value in values.items() if name not in MADE}, sort_keys=True).encode()


def sums(models: Path, names: list[str], shown: bool) -> Iterator[str]:
    """A line for each answer of each model."""
    for name in names:
        for answers in (command_lines, page_lines):
            for asked, content in answers(name, models):
                if shown:
                    print(f"--- {name} | {asked}\n{content[:600]!r}", file=sys.stderr)
                yield f"{name} | {asked} | {hashlib.sha256(content).hexdigest()}"


def train(models: Path, names: list[str]) -> None:
    """Make the models that are not there."""
    models.mkdir(parents=True, exist_ok=True)
    same_bits.write_data(models)
    for name in names:
        if not (models / name / "model.safetensors").exists():
            shutil.rmtree(models / name, ignore_errors=True)
            same_bits.train(name, models)


def main() -> None:
    """Make the models, print the lines, and compare."""
    parser = argparse.ArgumentParser(description="sha256 of the answers of small models")
    parser.add_argument("models", type=Path, help="the folder of the models; they are trained where they are missing")
    parser.add_argument("--expect", type=Path, metavar="FILE", help="compare with these lines; exit 1 if any differs")
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS), metavar="NAME")
    parser.add_argument("--show", action="store_true", help="show the beginning of every answer on stderr")
    asked = parser.parse_args()
    train(asked.models, asked.only)
    found = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for line in sums(asked.models.resolve(), asked.only, asked.show):
            print(line, flush=True)
            found.append(line)
    if asked.expect is None:
        return
    expected = dict(line.rsplit(" | ", 1) for line in asked.expect.read_text(encoding="utf-8").splitlines())
    others = [
        question for question, total in (line.rsplit(" | ", 1) for line in found) if expected.get(question) != total
    ]
    missing = {question for question in expected if question.split(" | ")[0] in asked.only}
    missing -= {line.rsplit(" | ", 1)[0] for line in found}
    for question in others:
        print(f"other: {question}", file=sys.stderr)
    for question in sorted(missing):
        print(f"not asked any more: {question}", file=sys.stderr)
    print(f"{len(found) - len(others)} of {len(found)} as expected", file=sys.stderr)
    sys.exit(1 if others or missing else 0)


if __name__ == "__main__":
    main()
