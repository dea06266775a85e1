"""Options of ``regard translate`` and ``ask`` for what outputs contain and what they do not."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter

from regard.cli.io.load_model import refuse_no_file
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.text.terms import Terminology
    from regard.text.terms import TermList


@Parameter(name="*")
@dataclass(frozen=True)
class TermOptions:
    """What outputs contain and what they do not.

    Args:
        terms: a file of terms, a line each with source, tab and target, other forms behind |, or = for what is kept
            as it is: where a text has the source, its output has one of the forms. A source in small letters
            matches in any case. Default: those of the model folder (regard terms).
        protect: numbers, addresses, placeholders (%(x)s, {name}, %d) and tags of a text come out unchanged.
        forbid: a file of words and phrases, a line each, that no output has; in small letters in any case.
    """

    terms: Path | None = None
    protect: bool = False
    forbid: Path | None = None

    def about(self, searches: bool) -> dict[str, object]:
        """What results depend on: fingerprints of the files.

        Args:
            searches: whether the best outputs are searched for.

        Raises:
            UsageError: there is no such file, or nothing is searched for.
        """
        files = {"--terms": self.terms, "--forbid": self.forbid}
        given = [name for name, value in {**files, "--protect": self.protect}.items() if value]
        if given and not searches:
            others = "--sample, --mbr without --beam, and --alternatives"
            raise UsageError(f"is kept by a search for the best outputs; leave {others} out", given[0])
        for path in filter(None, files.values()):
            refuse_no_file(path)
        found = {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path}
        return {**found, **({"--protect": True} if self.protect else {})}

    def terminology(self, own: TermList | None) -> Terminology | None:
        """That of the options, with the terms of the model folder where no file is given; None without any option.

        Raises:
            RegardError: a line of a file is no term, or the files do not go together.
        """
        if not (self.terms or self.protect or self.forbid):
            return None
        from regard.tasks.text.terms import Terminology

        return Terminology.read(self.terms, self.protect, self.forbid, own)


NO_TERM_OPTIONS = TermOptions()
