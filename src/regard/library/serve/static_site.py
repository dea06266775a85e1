"""The page as a static site: its own files, and the answers to what it asks of prepared texts.

The page reads ``api/state`` as from the server; by its ``saved`` it knows which questions have an answer, each in a
file that is named by the question (:func:`file_name`, as ``web/src/lib/saved.ts`` does).
"""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

from regard.inspection import PAGE
from regard.inspection.folders.models import Models
from regard.inspection.questions import answers
from regard.inspection.questions.look import POINTERS
from regard.library.serve.app import POINTS
from regard.library.serve.files import ASSETS, INDEX, files
from regard.system import VERSION, disk
from regard.system.errors import Option, RegardError, UsageError

API, STATE = "api", "state"
TEXTS, IMAGES, PICTURES, GOES_ON = 3, 6, 16, 40
"""Texts or images of each model; pictures to choose from; tokens that a language model goes on with, as on the page."""
COUNTS, NEAR, MAP, BEAMS = (16, 32, 64, 128, 256), 12, 1500, (1, 2, 3, 4)
"""What the page asks for: positions, nearest words, words of a map, beams."""
SEED, PRIME, MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
UNTOLD = ("weights", "opening")
"""What is the same in every question of a saved page."""
Told = Callable[[str], None]
Asked = Mapping[str, object]


def save_site(models: Models, folder: Path, told: Told = lambda text: None) -> int:
    """Write the page and its answers into a folder; returns how many answers.

    Args:
        models: that are shown.
        folder: new, empty, or a site that this wrote; that is replaced.
        told: called before each text.

    Raises:
        UsageError: the folder holds something else.
        RegardError: a model has no weights to be asked, or a file cannot be written.
    """
    page = files(PAGE)
    states: list[dict[str, Any]] = models.states()
    for state in states:
        if state["why"]:
            raise RegardError(f"cannot be saved: {state['why']}", str(state["folder"]))
    _clear(folder)
    _put(folder / API / STATE, b'{"saved": []}')  # ours, should it be interrupted
    site = _Answers(models, folder)
    for state in states:
        site.of_model(state, told)
    for name, file in page.items():
        _put(folder / name, file.content)
    cut = {"snapshots": [], "running": False}  # and no path, and only the texts that have answers
    kept = [{**state, "folder": state["name"], "examples": state["examples"][:TEXTS], **cut} for state in states]
    whole = {"version": VERSION, "models": kept, "saved": sorted(site.names)}
    _put(folder / API / STATE, json.dumps(whole, ensure_ascii=False).encode())
    return len(site.names)


def file_name(endpoint: str, asked: Asked) -> str:
    """The name of a question: FNV-1a of its JSON, without what is as usual; the page computes the same."""
    text = endpoint + json.dumps(_told(asked), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    code = SEED
    for byte in text.encode():
        code = (code ^ byte) * PRIME & MASK
    return f"{code:016x}"


def _told(value: Any) -> Any:
    """A question without its defaults: nulls, ``True``, empty lists and objects."""
    if isinstance(value, Mapping):
        inner = {name: _told(one) for name, one in value.items() if name not in UNTOLD}
        return {name: one for name, one in inner.items() if one is not None and one is not True and one not in ({}, [])}
    return [_told(one) for one in value] if isinstance(value, list | tuple) else value


def _clear(folder: Path) -> None:
    """Make room for a site, where there is nothing, or a site."""
    with disk.naming(folder):
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not _is_site(folder))):
            raise UsageError(f"holds something else; give {Option('save')} a new or empty folder", str(folder))
        for name in (API, ASSETS):
            if (folder / name).exists():
                shutil.rmtree(folder / name)


def _is_site(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    with suppress(OSError, ValueError, AttributeError):
        told = json.loads((folder / API / STATE).read_bytes())
        return names <= {API, ASSETS, INDEX} and "saved" in told
    return False


def _put(path: Path, content: bytes) -> None:
    with disk.naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class _Answers:
    """Asks the questions of a reader who looks through the views, and keeps each answer."""

    def __init__(self, models: Models, folder: Path) -> None:
        self.models, self.folder = models, folder
        self.names: set[str] = set()

    def of_model(self, state: Mapping[str, Any], told: Told) -> None:
        """All answers of a model."""
        model: dict[str, object] = {"model": state["number"]}
        pictures = self.ask("images", {**model, "begin": 0, "count": PICTURES}) if state["image"] else {}
        texts: list[dict[str, object]] = [
            {"image": {"number": at}, "text": ""} for at in range(min(IMAGES, pictures.get("total", 0)))
        ]
        texts += [{"text": text} for text in state["examples"][:TEXTS]]
        for number, text in enumerate(texts, 1):
            told(f"{state['name']}: {number} of {len(texts)}")
            self.of_text(state, model | text)
        done = {"done": -1, "total": 0}
        while (found := self.ask("heads", model)) and done["done"] < found["done"] < found["total"]:
            done = found
        if state["without"]:
            self.ask("without", model)
        for stack, count in product(state["stacks"], [state["max_tokens"]] if state["image"] else COUNTS):
            self.ask("places", {**model, "stack": stack, "count": count})
        for walked in _walk_changes(state):
            for text in state["classic" if state["classic"] else "walk"]["sentences"]:
                self.ask("look", {**model, "text": text["source"], "changes": {"off": walked}})
        if state["course"]:
            asked = {**model, "points": POINTS}
            self.keep("course", asked, answers.course(self.models, model=state["number"], points=POINTS))

    def of_text(self, state: Mapping[str, Any], plain: dict[str, object]) -> None:
        """All answers to what is asked of a text or an image."""
        asked = plain
        if state["writes"] in ("text", "continuation"):
            more = {"most": GOES_ON} if state["writes"] == "continuation" else {}
            lines = list(answers.stream_tokens(self.models, plain | more))
            self.keep(
                "write", plain | more, b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in lines)
            )
            written = plain | {"branch": [one["id"] for one in lines if "id" in one]}
            if state["writes"] == "text":
                asked = written
            else:
                self.ask("look", written)
                for place in range(len(self.ask("look", plain).get("source", ()))):
                    self.ask("distribution", {**plain, "place": place, "temperature": 1, "top_k": 0})
        first = {"opening": "cross" if "cross" in state["kinds"] else next(iter(state["kinds"]), "")}
        seen = self.ask("look", asked | first)
        self.ask("look", plain | first)
        for kind, (layers, heads) in state["kinds"].items():
            queries = len(seen[seen["kinds"][kind]["queries"]])
            for layer, head, query in product(range(1, layers + 1), range(1, heads + 1), range(queries)):
                self.ask("equation", asked | {"kind": kind, "layer": layer, "head": head, "query": query})
        self.of_figure(state, asked, seen["source"], seen["target"])
        for stack in state["stacks"]:
            self.ask("layers", asked | {"stack": stack})
        for beam in BEAMS:
            self.ask("tree", plain | {"beam": beam})
        words = {tuple(places) for _, places in seen["words"].get("written", ())}
        for places in sorted(words | {(place,) for place in range(len(seen["written"]))}):
            self.ask("needs", asked | {"places": list(places)})
        for side in state["sides"]:
            text = seen["source_text" if side == "source" else "target_text"]
            self.of_words(plain["model"], side, " ".join(text.replace("[MASK]", " ").split()))

    def of_figure(self, state: Mapping[str, Any], asked: Asked, source: Sequence[Any], target: Sequence[Any]) -> None:
        """The figure of each token beside the one that the other text begins with, and each box at every token."""
        read, written = _telling(source), _telling(target)
        pairs = {
            (read, written),
            *((one, written) for one in range(len(source))),
            *((read, one) for one in range(len(target))),
        }
        found: dict[str, Any] = {}
        for source_place, target_place in sorted(pairs):
            found = self.ask("figure", {**asked, "source_place": source_place, "target_place": target_place})
        stacks = [stack for stack, *_ in found.get("boxes", ()) if stack] or ["encoder"]
        for stack, layer, part, *_ in found.get("boxes", ()):
            for token in range(len(target if (stack or stacks[-1]) == "decoder" else source)):
                self.ask("box", {**asked, "stack": stack, "layer": layer, "part": part, "token": token})

    def of_words(self, model: object, side: str, text: str) -> None:
        """The nearest words of each piece, and the map."""
        asked = {"model": model, "side": side}
        found = self.ask("near", {**asked, "text": text, "count": NEAR})
        for piece in found.get("pieces", ()):
            self.ask("near", {**asked, "id": piece["id"], "count": NEAR})
        self.ask("map", {**asked, "text": text, "count": MAP, "unseen": False})

    def ask(self, name: str, asked: Asked) -> dict[str, Any]:
        """The values of an answer, which is kept; nothing where the model cannot be asked this."""
        with suppress(RegardError):
            content = answers.answer(self.models, name, dict(asked))
            self.keep(name, asked, content)
            (length,) = struct.unpack_from("<I", content)
            values: dict[str, Any] = json.loads(content[4 : 4 + length])
            return values
        return {}

    def keep(self, endpoint: str, asked: Asked, content: bytes) -> None:
        """Write an answer under the name of its question."""
        name = file_name(endpoint, asked)
        self.names.add(name)
        _put(self.folder / API / f"{name}.bin", content)


def _telling(tokens: Sequence[Mapping[str, Any]]) -> int:
    """The token that the page's figure begins with: a pronoun behind the first word, else the word in the middle."""
    plain = [place for place, token in enumerate(tokens) if not token["special"]]
    words = [place for place in plain if re.search(r"[^\W\d_]", tokens[place]["text"])]
    known = (place for place in words[1:] if POINTERS.fullmatch(re.sub(r"[▁Ġ\s]", "", tokens[place]["text"])))
    among = words or plain or [0]
    return next(known, among[len(among) // 2])


def _walk_changes(state: Mapping[str, Any]) -> Iterator[list[list[object]]]:
    """The heads that the guided walk takes out, one set after another."""
    if state["walk"] or state["classic"]:
        yield []
    if not (walk := state["walk"]):
        return
    study = walk["study"]
    costliest = min(study["heads"], key=lambda one: one["right"])["head"]
    for heads in ((study["smallest"] or {"heads": ()})["heads"], study["without_lookers"]["heads"], [costliest]):
        yield [[one["kind"], one["layer"], one["head"]] for one in heads]
