"""The models of a server: found by language or by name, opened at first use, let go when idle, renewed when changed."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from regard.config import Recipe
from regard.config.adapter import Base
from regard.engine.weights import SharedWeights
from regard.serving.core import ServedLanguage, ServiceError, StaleModel
from regard.serving.languages import language_name
from regard.system.errors import RegardError, UsageError
from regard.tasks.model_folder import LazyEngine, load_recipe_and_assets, open_by_engine, open_with
from regard.tasks.model_path import fingerprint, finished_folder
from regard.tasks.text.precisions import Wanted
from regard.text.language_tokens import UNKNOWN_LANGUAGE, Direction, find_code
from regard.text.languages import primary

if TYPE_CHECKING:
    from regard.serving.search.request import SharedSearch
    from regard.tasks.protocols import Task

_NAMED = re.compile(r"([A-Za-z]{2,3}(?:[-_]\w+)*):([A-Za-z]{2,3}(?:[-_]\w+)*)=(.+)", re.DOTALL)
_LOG = logging.getLogger(__name__)
LOOK = 1.0
"""Seconds between two looks whether a folder has changed."""


@dataclass
class ServedModel:
    """A model folder of a server, and its task while that is in memory.

    Args:
        name: by which requests name it: the folder's.
        folder: that was given.
        recipe: of the model.
        given: the words that named it.
        directions: those of a translator.
        usual: the direction that needs not be asked for.
    """

    name: str
    folder: Path
    recipe: Recipe
    given: str
    directions: frozenset[Direction] = frozenset()
    usual: Direction = (UNKNOWN_LANGUAGE, UNKNOWN_LANGUAGE)
    task: Task | None = None
    mark: str | None = None
    refused: str | None = None
    used: float = 0.0
    looked: float = 0.0
    users: int = 0
    loads: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    counting: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, given: str) -> ServedModel:
        """That of ``FOLDER``, or of ``en:de=FOLDER`` where the folder does not say its languages.

        Raises:
            RegardError: it is no model folder, or its languages are not known.
        """
        named = _NAMED.fullmatch(given) if not Path(given).exists() else None
        folder = Path(named[3] if named else given)
        recipe, assets = load_recipe_and_assets(finished_folder(folder))
        found = cls(folder.resolve().name, folder, recipe, given)
        if recipe.info.command != "translate":
            return found
        tokens = assets.languages
        own = (named[1], named[2]) if named else (recipe.text.source_language, recipe.text.target_language)
        if tokens is None:
            if UNKNOWN_LANGUAGE in own:
                raise UsageError(f"does not say its languages; write en:de={folder}, with its codes", str(folder))
            known: Iterable[Direction] = [own]
        elif tokens.directions:
            known = tokens.directions
        elif tokens.begins:
            known = permutations(tokens.ids, 2)
        elif own[0] == UNKNOWN_LANGUAGE:
            raise UsageError(f"does not say what it reads; write en:de={folder}, with its codes", str(folder))
        else:
            known = [(own[0], code) for code in tokens.ids]
        return replace(found, directions=frozenset(known), usual=own)


@dataclass(frozen=True)
class Hop:
    """A translation by one model: its languages, by its own codes."""

    model: ServedModel
    direction: Direction


class ServedModels:
    """The models of a server.

    Args:
        folders: as :meth:`ServedModel.of` has them; of several in one direction the first is used.
        precision: of the engine.
        idle: seconds after which a model that nobody uses leaves memory; 0: never.
        searching: which is told of every translator that is opened.

    Raises:
        UsageError: there is none, or two of one name.
        RegardError: one cannot be served.
    """

    def __init__(
        self,
        folders: Sequence[str],
        precision: Wanted = "auto",
        idle: float = 0.0,
        searching: SharedSearch | None = None,
    ) -> None:
        if not folders:
            raise UsageError("name at least one model folder", "MODEL")
        self.all = [ServedModel.of(folder) for folder in folders]
        names = [one.name for one in self.all]
        if twice := next((one for one in names if names.count(one) > 1), None):
            raise UsageError(f"two folders are named {twice!r}; rename one, as requests name models so", "MODEL")
        self._idle, self._precision, self._searching = idle, precision, searching
        families = [_family(finished_folder(one.folder)) for one in self.all]
        self._families = dict(zip(names, families, strict=True))
        """The base of each model, by its name: itself, unless it is an adapter."""
        self._shared = {family: SharedWeights() for family in families if families.count(family) > 1}
        self._renewed = Counter[Path]()
        self.beam = max((one.recipe.decoding.beam for one in self.all if one.directions), default=1)
        """The widest that a translator has by itself."""
        self._hops: dict[str, dict[str, Hop]] = {}
        """By source, then by target."""
        self._targets: dict[str, None] = {}
        for model in self.all:
            for source, target in sorted(model.directions):
                self._hops.setdefault(source, {}).setdefault(target, Hop(model, (source, target)))
                self._targets[target] = None

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self.all)

    @property
    def sources(self) -> list[str]:
        """Languages that are read."""
        return list(self._hops)

    def languages(self) -> list[ServedLanguage]:
        """Those that are read, each with those into which it is translated, also through a third one."""
        found = []
        for source, direct in sorted(self._hops.items()):
            targets = {*direct, *(end for middle in direct for end in self._hops.get(middle, ()) if end != source)}
            found.append(ServedLanguage(source, language_name(source), tuple(sorted(targets)), tuple(direct)))
        return found

    def route(self, source: str, target: str) -> tuple[Hop, ...]:
        """The hops from one language to another: one, or two through a third.

        Raises:
            UsageError: a language is not known.
            ServiceError: no models lead there (400).
        """
        begin, end = self.find_source(source), self.find_target(target)
        if begin == end:
            raise ServiceError(400, f"{begin} is the language of both sides")
        direct = self._hops[begin]
        if hop := direct.get(end):
            return (hop,)
        for middle, hop in direct.items():
            if other := self._hops.get(middle, {}).get(end):
                return hop, other
        raise ServiceError(400, f"{begin} is not translated into {end} here")

    def leads(self, source: str, target: str) -> bool:
        """Whether one served language is translated into another."""
        direct = self._hops[source]
        return target in direct or (source != target and any(target in self._hops.get(one, ()) for one in direct))

    def find_source(self, code: str, target: str | None = None) -> str:
        """The served code of a language that is read, or of that which is written: its texts stay."""
        known = self.sources
        return _find(code, known if target is None or target in known else [*known, target], "source")

    def find_target(self, code: str) -> str:
        """The served code of a language that is written."""
        return _find(code, list(self._targets), "target")

    def of_command(self, command: str, name: str | None) -> ServedModel:
        """The model that a command would use: by its name, or the only one.

        Raises:
            ServiceError: there is none (404), or there are several (400).
        """
        info = [(one, one.recipe.info) for one in self.all if name in (None, one.name)]
        able = [one for one, kind in info if kind.command == command and kind.reads != "image"]
        if len(able) == 1:
            return able[0]
        if able:
            raise ServiceError(400, f"name one model: {', '.join(one.name for one in able)}")
        of = "no such model" if name else "no model for this"
        raise ServiceError(404, f"there is {of} here")

    @contextmanager
    def use(self, model: ServedModel) -> Iterator[Task]:
        """A model's task while the context is open: opened if it is not in memory, anew where its folder changed.

        Raises:
            ServiceError: the folder is damaged or gone (503).
        """
        task = self._task(model)
        with model.counting:
            model.users += 1
        try:
            yield task
        finally:
            with model.counting:
                model.users -= 1
            model.used = time.monotonic()

    def _task(self, model: ServedModel) -> Task:
        now = time.monotonic()
        with model.lock:
            changed = False
            if now - model.looked > LOOK:
                model.looked = now
                changed = model.task is not None and _mark(model.folder) not in (model.mark, None)
            if model.task is None or changed:
                mark = _mark(model.folder)
                try:
                    task = self._open(model, changed, mark)
                    model.task, model.mark, model.loads = task, mark, model.loads + 1
                except (RegardError, OSError) as error:
                    message = error.message if isinstance(error, RegardError) else str(error)
                    if model.task is None:  # else the one before goes on: the folder may be in the making
                        after = (isinstance(error, ServiceError) and error.retry_after) or 30
                        raise ServiceError(503, f"the model {model.name} cannot be opened: {message}", after) from error
                    if mark != model.refused:
                        _LOG.warning("the model %s has changed, and is used as it was: %s", model.name, message)
                    model.refused = mark
            return model.task

    def _open(self, model: ServedModel, changed: bool, mark: str | None) -> Task:
        family = self._families[model.name]
        if changed and family in self._shared:
            self._shared[family] = SharedWeights()  # what the others have stays theirs
            self._renewed[family] += 1
        shared = self._shared.get(family)
        searching = self._searching if model.directions else None
        if searching and searching.elsewhere:
            task = self._open_later(model, mark, shared)
        else:
            task = open_by_engine(model.folder, self._precision, shared)
        if task.info.command != model.recipe.info.command:
            raise RegardError(f"is {task.info.noun} now; start the server anew", str(model.folder))
        if changed and ServedModel.of(model.given).directions != model.directions:
            raise RegardError("has other languages now; start the server anew", str(model.folder))
        if searching:
            searching.open(task, model.folder, mark, f"{family} {self._renewed[family]}" if shared else None)
        return task

    def _open_later(self, model: ServedModel, mark: str | None, shared: SharedWeights | None) -> Task:
        """A task whose engine is opened once scores, links or weights are asked for: the search has its own."""

        def open_engine() -> object:
            with suppress(RegardError, OSError):
                task = open_by_engine(model.folder, self._precision, shared)
                if task.engine and _mark(model.folder) == mark:
                    return task.engine()
            model.looked = 0.0
            raise StaleModel(503, f"the model {model.name} has changed; ask again in 2 s", 2)

        return open_with(model.folder, LazyEngine(open_engine), self._precision)

    def let_go(self) -> None:
        """Let models that nobody used for long leave memory."""
        for model in self.all:
            with model.lock:
                if self._idle and not model.users and time.monotonic() - model.used > self._idle:
                    model.task = None
        for family in self._shared:
            if not any(one.task for one in self.all if self._families[one.name] == family):
                self._shared[family] = SharedWeights()
                self._renewed[family] += 1


def _family(folder: Path) -> Path:
    """The base of an adapter; of another model its own folder."""
    base = Base.of(folder)
    return (base.folder if base else folder).resolve()


def _mark(folder: Path) -> str | None:
    try:
        return fingerprint(folder)
    except (RegardError, OSError):
        return None


def _find(wanted: str, known: Sequence[str], name: str) -> str:
    """The known code that is meant: ``DE``, ``de-AT`` or ``deu`` for ``de``."""
    lower = {code.lower(): code for code in known}
    if found := lower.get(wanted.lower()):
        return found
    near = [code for code in known if primary(code) == primary(wanted)]
    return near[0] if len(near) == 1 else find_code(wanted, known, name)
