"""``regard keys``: who may use a server."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.cli.io.terminal import result, result_json, say
from regard.system.errors import Option, UsageError
from regard.text.counts import counted


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
