"""How a translator of several languages is told which it reads and which it writes: by tokens around texts.

M2M-100, NLLB and mBART put the source's before the text, and begin the translation with the target's [Fan21 §2.1.4].
Marian's models and our own put the target's before the text alone [Johnson17 §3]. Of one language each way, OpenNMT's
models read a source as it is; some of its translations begin with a token that says their language.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import Option, RegardError, UsageError
from regard.text.counts import counted

LANGUAGES = "languages.json"
"""The file of a model folder; folders of one language each way have none."""
FRAME = "frame.json"
"""The file of a model folder; folders of models of our own have none."""
UNKNOWN_LANGUAGE = "und"
MOST_SHOWN = 400
"""Characters of the codes that an error names."""
Frame = tuple[tuple[int, ...], tuple[int, ...]]
"""The tokens before a text, and those that begin its translation."""
Direction = tuple[str, str]
"""The codes of the languages that a text is in and is translated into."""
ARGUMENTS = Option("source_language"), Option("target_language")
_CODES = (
    "af afr am amh ar ara as asm az aze be bel bg bul bn ben bs bos ca cat cs ces cy cym da dan de deu el ell en eng "
    "eo epo es spa et est eu eus fa fas fi fin fr fra ga gle gd gla gl glg gu guj ha hau he heb hi hin hr hrv hu hun "
    "hy hye id ind ig ibo is isl it ita ja jpn jv jav ka kat kk kaz km khm kn kan ko kor ky kir la lat lb ltz lo lao "
    "lt lit lv lav mg mlg mk mkd ml mal mn mon mr mar ms msa mt mlt my mya ne nep nl nld nn nno no nor nb nob or ori "
    "pa pan pl pol ps pus pt por ro ron ru rus sd snd si sin sk slk sl slv so som sq sqi sr srp su sun sv swe sw swa "
    "ta tam te tel th tha tl tgl tr tur tt tat uk ukr ur urd uz uzb vi vie xh xho yi yid yo yor zh zho zu zul"
).split()
ISO = dict(zip(_CODES[::2], _CODES[1::2], strict=True))
"""ISO 639-1 to 639-3, of languages that such models know."""
MEMBERS = {
    "als": "sqi", "arb": "ara", "azj": "aze", "ekk": "est", "khk": "mon", "lvs": "lav", "npi": "nep", "ory": "ori",
    "pbt": "pus", "pes": "fas", "plt": "mlg", "swh": "swa", "uzn": "uzb", "ydd": "yid", "zsm": "msa",
}  # fmt: skip
"""The usual member of a language that has several, as NLLB names it, to its whole."""


@dataclass(frozen=True)
class TextFrame:
    """The tokens around texts of a translator of one language each way.

    Args:
        before: before what is read.
        ended: whether ``</s>`` ends what is read.
        prefix: what a translation begins with; no part of its text.
    """

    before: tuple[int, ...] = ()
    ended: bool = True
    prefix: tuple[int, ...] = ()

    @property
    def content(self) -> bytes:
        """The file of a model folder."""
        return (json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode()


PLAIN = TextFrame()
"""Nothing stands around texts but ``</s>`` behind them."""


@dataclass(frozen=True)
class LanguageTokens:
    """The tokens of languages.

    Args:
        ids: by the code that the model's folder has, such as ``deu_Latn``, ``de_DE`` or ``de``.
        begins: the target's token begins the translation, and the source's the text; else the target's the text alone.
        directions: those that training had; empty where they are not known.
    """

    ids: Mapping[str, int]
    begins: bool
    directions: tuple[Direction, ...] = ()

    @property
    def content(self) -> bytes:
        """The file of a model folder."""
        values = {"format": FORMAT, "begins": self.begins, "tokens": dict(self.ids)}
        values |= {"directions": self.directions} if self.directions else {}
        return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()

    @property
    def has_sources(self) -> bool:
        """Whether it is known which languages it reads."""
        return self.begins or bool(self.directions)

    @property
    def codes(self) -> tuple[str, ...]:
        """The languages that it knows; where it is not known which it reads, those that it writes."""
        return tuple(dict.fromkeys(code for pair in self.directions for code in pair) or self.ids)

    @property
    def sentence(self) -> str:
        """The directions that it learned; where they are not known, its languages."""
        if self.directions:
            return f"It learned {shown(map(' → '.join, self.directions))}."
        return f"It {'knows' if self.begins else 'writes'} {counted(len(self.ids), 'language')}: {shown(self.ids)}."

    def find(self, source: str, target: str, arguments: tuple[str, str] = ARGUMENTS) -> Direction:
        """The folder's codes of two languages; one that is unknown stays so, and a source that may be any.

        Raises:
            UsageError: as :func:`find_code`, which is given the arguments.
        """
        known = self.codes if self.has_sources else (source,), self.ids
        first, second = (
            code if code == UNKNOWN_LANGUAGE else find_code(code, some, argument)
            for code, some, argument in zip((source, target), known, arguments, strict=True)
        )
        return first, second

    def frame(self, source: str, target: str, arguments: tuple[str, str] = ARGUMENTS) -> Frame:
        """The tokens before a text, and those that begin its translation; of a language that is unknown the first.

        Raises:
            UsageError: as :meth:`find`, which is given the arguments; of a source that has no token it is not asked.
        """
        usual = next(iter(self.ids.values()))
        codes = self.find(source if self.begins else UNKNOWN_LANGUAGE, target, arguments)
        before, first = (self.ids.get(code, usual) for code in codes)
        return ((before,), (first,)) if self.begins else ((first,), ())


def find_code(wanted: str, known: Iterable[str], argument: str) -> str:
    """The code among those known that is meant: itself, or the only one of the same language (``de``: ``deu_Latn``).

    Raises:
        UsageError: there is none, or several; names the argument.
    """
    known = list(known)
    if wanted in known:
        return wanted
    base, more = _parts(wanted)
    near = [code for code in known if _parts(code)[0] == base]
    found = [code for code in near if more <= _parts(code)[1]]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{wanted!r} is {', '.join(found)} here; choose one of them", argument)
    raise UsageError(f"the model knows no {wanted!r}; it knows {shown(near or known)}", argument)


def shown(codes: Iterable[str]) -> str:
    """A list of codes, cut where it is long."""
    there = ", ".join(codes)
    return there if len(there) <= MOST_SHOWN else f"{there[:MOST_SHOWN]} …"


def read_languages(folder: Path) -> LanguageTokens | None:
    """The languages of a model folder; ``None`` where it has one each way.

    Raises:
        RegardError: the file is damaged, or a newer Regard wrote it.
    """
    path = folder / LANGUAGES
    if not path.exists():
        return None
    values = disk.json_of(path)
    if not isinstance(values, dict):
        raise RegardError("is damaged: the tokens of languages were expected", str(path))
    checksum.refuse_newer(values, path)
    ids: Any = values.get("tokens")
    begins, pairs = values.get("begins"), values.get("directions", [])
    known = isinstance(ids, dict) and bool(ids) and all(type(id) is int for id in ids.values())
    if not known or not isinstance(begins, bool):
        raise RegardError(f"is damaged: {'begins' if known else 'tokens'} is not what it should be", str(path))
    if not isinstance(pairs, list) or not all(_is_direction(pair, ids) for pair in pairs):
        raise RegardError("is damaged: directions are pairs of codes, the second of which has a token", str(path))
    return LanguageTokens(ids, begins, tuple((one, other) for one, other in pairs))


def read_frame(folder: Path) -> TextFrame:
    """The frame of a model folder.

    Raises:
        RegardError: its file is damaged, or a newer Regard wrote it.
    """
    path = folder / FRAME
    if not path.exists():
        return PLAIN
    values: Any = disk.json_of(path)
    try:
        checksum.refuse_newer(values, path)
        found = TextFrame(tuple(values["before"]), values["ended"], tuple(values["prefix"]))
        sound = type(found.ended) is bool and all(type(id) is int and id >= 0 for id in found.before + found.prefix)
    except (AttributeError, KeyError, TypeError):
        sound = False
    if not sound:
        raise RegardError("is damaged: the tokens around texts were expected", str(path))
    return found


def refuse_unknown(known: LanguageTokens | None, usual: Direction, where: Path) -> None:
    """Refuse a model folder whose recipe names a language that its tokens do not have.

    Raises:
        RegardError: so it is; names file and field.
    """
    try:
        if known:
            known.frame(*usual)
    except UsageError as error:
        message = f"is damaged: tokens has not the language that recipe.toml names; {error.message}"
        raise RegardError(message, str(where / LANGUAGES)) from None


def _is_direction(value: object, known: Mapping[str, int]) -> bool:
    """Whether a value is the codes of two languages, and the second's token is known."""
    pair = value if isinstance(value, list) and len(value) == 2 else [None, None]
    return isinstance(pair[0], str) and isinstance(pair[1], str) and pair[1] in known


def _parts(code: str) -> tuple[str, set[str]]:
    """The language of a code, of three letters where we know them, and what else it says: script, country."""
    first, *more = code.lower().replace("-", "_").split("_")
    base = ISO.get(first, first)
    return MEMBERS.get(base, base), set(more)
