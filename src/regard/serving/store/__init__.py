"""What lasts, in SQLite: keys, glossaries, documents, memory, usage."""

from __future__ import annotations

import os
from pathlib import Path

from regard.serving.core import Key
from regard.serving.store.database import NAME, Database
from regard.serving.store.glossaries import Glossaries
from regard.serving.store.jobs import Jobs
from regard.serving.store.keys import Keys
from regard.serving.store.memory import ClientMemory
from regard.serving.store.usage import Usage
from regard.system.errors import Option, RegardError
from regard.text.languages import primary


class Store:
    """What lasts; every part may be used by several threads, and a folder by several processes.

    Args:
        database: that holds it.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.keys = Keys(database)
        self.usage = Usage(database)
        self.glossaries = Glossaries(database)
        self.jobs = Jobs(database)

    @classmethod
    def open(cls, folder: Path | None) -> Store:
        """That of a folder, which is made where there is none; ``None``: in memory, for this process alone.

        Raises:
            RegardError: the file in it cannot be opened, or is none of a store.
        """
        return cls(Database(folder and folder / NAME))

    def memory(self, owner: Key, source: str, target: str) -> ClientMemory:
        """The translation memory of a key and two languages, regardless of region and script."""
        return ClientMemory(self.database, (owner.id, primary(source), primary(target)))

    def close(self) -> None:
        """Write what was counted; nothing can be asked afterwards."""
        self.usage.flush()
        self.database.close()


def data_folder(given: Path | None) -> Path:
    """A folder that is given, else that of this user's data: below ``XDG_DATA_HOME``, else ``~/.local/share``.

    Raises:
        RegardError: none is given, and the user has no home.
    """
    if given is not None:
        return given
    share = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not share.is_absolute():
        try:
            share = Path.home() / ".local" / "share"
        except RuntimeError:
            raise RegardError("is missing, and this user has no home; name a folder", Option("data")) from None
    return share / "regard"
