"""``regard serve`` and ``keys``: models behind HTTP for the programs and people of a team, and who may use them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.io.exchange import Precision
from regard.cli.io.load_model import check_threads
from regard.cli.io.terminal import result, result_json, say
from regard.system.errors import Option, RegardError, UsageError
from regard.system.installation import SERVING, require
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.serving.models import ServedModels

PORT = 5000
"""LibreTranslate's, so that its clients find us."""
MOST_LOOPS = 4
"""Threads that search; more divide the steps of these."""
MEBIBYTE = 1 << 20
NAME = r"[a-z0-9._-]+|\[[0-9a-f:.]+\]"
ORIGIN = rf"(https?|[a-z]+-extension)://({NAME})(:\d+)?/?"


def serve(
    folders: Annotated[list[str] | None, Parameter(name="MODEL...")] = None,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    data: Path | None = None,
    open: bool = False,
    name: list[str] | None = None,
    origin: list[str] | None = None,
    idle: float = 0.0,
    seconds: float = 60.0,
    document_mebibytes: int = 32,
    attention: str | None = None,
    log: bool = False,
    check: bool = False,
    threads: int | None = None,
    precision: Precision = "auto",
) -> None:
    """Serve models over HTTP: a page for people, and the interfaces of LibreTranslate, DeepL, Google and our own.

    Models are found by language; where none translates directly, two do through a third. All clients share one batch,
    and a sentence's translation does not depend on the others. Only this machine is answered, unless --host is another:
    then clients need a key (regard keys), or --open lets everybody in. Ctrl-C or SIGTERM ends it when what runs is
    done.

    Args:
        folders: model folders, of several languages and tasks; en:de=FOLDER where a folder does not say its languages.
        host: the address to listen at; 0.0.0.0: all of this machine's.
        port: the port; 0: any that is free.
        data: a folder for keys, glossaries, documents and usage; default: ~/.local/share/regard.
        open: answer clients without a key, whatever the host.
        name: a name by which clients ask for this server, behind a proxy for instance; may be given several times.
        origin: a page of another site that may ask from browsers, https://wiki.example.org; may be given several times.
        idle: seconds after which a model that nobody used leaves memory; 0: never.
        seconds: that a request may take.
        document_mebibytes: size of a document at most.
        attention: the address of a regard explore of these models, to which the page links.
        log: a line on stderr for each request, without its texts.
        check: open everything, translate a word with each translator, and say whether it could be served.
        threads: processor threads; default: all.
        precision: how the engine stores weights: auto is the fastest that regard pack found to keep the score.
    """
    check_threads(threads)
    if not 0 <= port < 1 << 16:
        raise UsageError(f"there is no port {port}", Option("port"))
    if not folders:
        raise UsageError("name a model folder, or several", "MODEL")
    if not idle >= 0:
        raise UsageError("expected 0 or more", Option("idle"))
    if not seconds > 0:
        raise UsageError("expected more than 0", Option("seconds"))
    names, origins = ([one.lower() for one in given or ()] for given in (name, origin))
    _refuse_unlike("name", names, NAME, "a name without a port, such as translate.example.org")
    _refuse_unlike("origin", origins, ORIGIN, "an address without a path, such as https://wiki.example.org")
    _refuse_unlike("attention", [attention] if attention else [], r"https?://\S+", "an address, http://… or https://…")
    require("starlette", "uvicorn", *SERVING)
    from regard.serving.app import LOOPBACK, Access, ServiceServer, ServiceSite, listen
    from regard.serving.models import ServedModels
    from regard.serving.search.process import SearchProcess
    from regard.serving.service import Limits, TranslationService
    from regard.serving.store import Store, data_folder
    from regard.serving.store.jobs import LARGEST
    from regard.system import kernels
    from regard.system.processor import share_arena, usable_cores

    if not 0 < document_mebibytes * MEBIBYTE <= LARGEST:
        raise UsageError(f"expected 1 to {LARGEST // MEBIBYTE}", Option("document_mebibytes"))
    try:
        listen(host, 0).close()
    except (OSError, ValueError):
        raise UsageError(f"this machine has no address {host!r:.100}", Option("host")) from None
    share_arena()
    cores = threads or usable_cores()
    loops = min(cores, MOST_LOOPS)
    kernels.use_threads(max(1, cores // loops))
    searching = None if check else SearchProcess(loops, max(1, cores // loops), precision)
    models = ServedModels(folders, precision, idle, searching)
    if check:
        _check(models)
    store = Store.open(data_folder(data))
    local = host in LOOPBACK
    needs_key = not open and (store.keys.needed or not local)
    if needs_key and not store.keys.needed:
        message = f"at {host} clients need a key, and there is none: regard keys make NAME; or --open lets everybody in"
        raise UsageError(message, Option("host"))
    if searching is None:
        store.close()
        return
    service = TranslationService(models, store, searching, needs_key, Limits(seconds=seconds))
    access = Access(host, tuple(names), tuple(one.rstrip("/") for one in origins), log)
    site = ServiceSite(service, access, attention, document_mebibytes * MEBIBYTE)
    try:
        listener = listen(host, port)
    except OSError as error:
        raise UsageError(f"cannot listen at {host}, port {port}: {error.strerror}", Option("port")) from None
    with listener:
        address = f"[{host}]" if ":" in host else host
        result(f"Serving {_said(models)} at http://{address}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
        if open and not local:
            say("everybody who reaches this address is answered (--open)")
        sys.stdout.flush()
        Option.dashes = False  # clients read of fields
        service.start()
        ServiceServer(site, service).run([listener])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of calls that were ended may still compute


def _refuse_unlike(option: str, given: Sequence[str], pattern: str, expected: str) -> None:
    for one in given:
        if not re.fullmatch(pattern, one):
            raise UsageError(f"expected {expected}, not {one!r:.100}", Option(option))


def _said(models: ServedModels) -> str:
    """The directions that are served, a few of them; or how many models, where none translates."""
    directions = sorted({pair for one in models for pair in one.directions})
    few = ", ".join(" → ".join(pair) for pair in directions[:5])
    return f"{few} …" if len(directions) > 5 else few or counted(len(models.all), "model")


def _check(models: ServedModels) -> None:
    """Open every model, and translate a word with each translator.

    Raises:
        RegardError: one cannot be served; the others were tried.
    """
    from regard.tasks.kinds import translates

    failed = 0
    for model in models:
        try:
            with models.use(model) as task:
                kind = f"{task.info.noun}, {getattr(task, 'precision', 'fp32')}"
                if translates(task):
                    source, target = model.usual if model.usual in model.directions else min(model.directions)
                    said = task.in_direction((source, target)).translate("1")
                    kind += f", {counted(len(model.directions), 'direction')}; {source} → {target}: 1 → {said}"
                result(f"{model.name}: {kind}")
        except RegardError as error:
            say(str(error))
            failed += 1
    if failed:
        raise RegardError(f"{failed} of {len(models.all)} models cannot be served; see above")


def keys(
    action: Annotated[Literal["make", "list", "revoke"], Parameter(name="ACTION")],
    name: Annotated[str | None, Parameter(name="NAME")] = None,
    /,
    *,
    data: Path | None = None,
    characters: int | None = None,
    json: bool = False,
) -> None:
    """Make, list or revoke the keys of clients of regard serve.

    The secret of a new key is printed once; the server keeps its hash alone. A server that has a key at its start asks
    every client for one. Keys are made and revoked while it runs. What a key owned (glossaries, documents, memory) is
    deleted with it.

    Args:
        action: make a key and print its secret, list all keys, or revoke one.
        name: of the key to make or revoke: whose it is, or what for.
        data: the folder that regard serve keeps what lasts in; default: regard in XDG_DATA_HOME, else
            ~/.local/share/regard.
        characters: that a new key may have translated in a calendar month; default: any number.
        json: print one JSON object.
    """
    if (name is None) != (action == "list"):
        wanted = "takes no name" if name else "needs the name of a key"
        raise UsageError(f"regard keys {action} {wanted}")
    if characters is not None and action != "make":
        raise UsageError("is for a key that is made", Option("characters"))
    from regard.serving.store import Store, data_folder

    with closing(Store.open(data_folder(data))) as store:
        if name is None:
            found = store.keys.all()
            if json:
                result_json({"keys": list(map(asdict, found))})
            elif not found:
                say("there are no keys; make one by regard keys make NAME")
            for one in () if json else found:
                most = "" if one.characters is None else f" of {one.characters:,}"
                used = f"last used {one.used}" if one.used else "never used"
                result(f"{one.name}\t{counted(one.month, 'character')}{most} this month\tmade {one.created}, {used}")
        elif action == "make":
            secret = store.keys.make(name, characters)
            result_json({"name": name, "secret": secret}) if json else result(secret)
        else:
            store.keys.revoke(name)
            result_json({"revoked": name}) if json else say(f"revoked {name}")
