r"""LaTeX: paragraphs, headings, captions, items and cells are segments; commands with a text are tags around it.

What a command means is known for those of LaTeX and its usual packages. One that is not known keeps its arguments, as
do formulas, labels and references; of the preamble the title alone is translated.
"""

from __future__ import annotations

import re
import unicodedata

from regard.documents.blocks import BlockSegments, Inline, keep
from regard.documents.encoding import decode
from regard.documents.segment import Segment, TextDocument, inner

NEVER = (
    "equation align alignat flalign gather multline eqnarray math displaymath dmath array verbatim Verbatim alltt "
    "lstlisting minted comment filecontents tikzpicture picture pgfpicture algorithm algorithmic algorithm2e "
    "thebibliography tabbing"
).split()
"""Environments that are left as they are."""
TABLES = frozenset("tabular tabularx tabulary longtable supertabular".split())
ARGUMENTS = {
    **dict.fromkeys(("tabular", "longtable", "supertabular", "minipage", "multicols", "column", "list"), 1),
    **dict.fromkeys(("tabularx", "tabulary", "wrapfigure", "wraptable"), 2),
}
"""Environments with arguments that are no text, and how many."""
HEADINGS = frozenset(
    "part chapter section subsection subsubsection paragraph subparagraph caption title subtitle frametitle "
    "framesubtitle subcaption captionof".split()
)
NOTES = frozenset("footnote footnotetext thanks marginpar marginnote sidenote endnote".split())
"""Commands whose argument is a text of its own, beside the sentence."""
AROUND = {
    **dict.fromkeys(
        "emph textbf textit textsl textsc textup textmd textrm textsf textnormal underline uline sout mbox text hbox "
        "enquote alert structure hyperref textsuperscript textsubscript so hl".split(),
        0,
    ),
    **dict.fromkeys(("href", "textcolor", "colorbox", "foreignlanguage", "hyperlink"), 1),
}
"""Commands around a part of a sentence, and how many arguments come before it."""
BLOCKS = frozenset(
    "item par hline toprule midrule bottomrule maketitle tableofcontents newpage clearpage bigskip medskip smallskip "
    "appendix printbibliography vfill centering noindent and".split()
)
LEFT = frozenset("bibliography include input cline cmidrule newcommand renewcommand providecommand def".split())
"""Blocks with arguments that are no text."""
BREAKS = frozenset(("\\", "newline", "linebreak"))
NUMBERS = frozenset("ref eqref pageref autoref cref Cref vref nameref".split())
"""Commands that become a number, or a noun with one."""
SILENT = frozenset(
    "label cite citep parencite autocite nocite index vspace hspace includegraphics color pagestyle thispagestyle "
    "setcounter addtocounter setlength usepackage phantom vphantom rule bibliographystyle selectlanguage".split()
)
"""Commands that are no part of the sentence."""
NOUNS = frozenset("texttt code citet textcite Citet Textcite gls Gls ac url nolinkurl path verb lstinline".split())
SIGNS = {
    **{sign: sign for sign in (*"%&$#_{}", "LaTeX", "TeX")},
    **dict(zip("\n ,-/@", ["\n", " ", "\u202f", "", "", ""], strict=True)),
    **dict(zip("ldots dots textellipsis ss ae AE oe OE o O aa AA l L i S".split(), "………ßæÆœŒøØåÅłŁı§", strict=True)),
    **dict(zip("textendash textemdash textquoteleft textquoteright".split(), "–—‘’", strict=True)),
    **dict(zip("textquotedblleft textquotedblright textbackslash textasciitilde".split(), "“”\\~", strict=True)),
    **dict(zip("textasciicircum textbar textless textgreater euro pounds copyright".split(), "^|<>€£©", strict=True)),
}
"""Commands that are a sign of the text."""
_MARKS = (768, 769, 770, 776, 771, 772, 775, 807, 780, 774, 779, 808, 778, 803, 817)
ACCENTS = dict(zip("`'^\"~=.cvuHkrdb", map(chr, _MARKS), strict=True))
_DECLARED = (
    r"\\(?:bf|it|em|sl|sc|rm|sf|(?:bf|rm|sf)(?:series|family)|(?:it|sl|sc)shape|tiny|(?:script|footnote|normal)(?:size)?"
    r"|small|[lL]arge|LARGE|[hH]uge)(?![A-Za-z])\s*"
)
_TOKEN = re.compile(
    rf"""(?P<comment>%[^\n]*(?:\n(?!\s*\n)[ \t]*|\Z)?) | (?P<paragraph>\n[ \t]*\n\s*)
    | (?P<never>\\begin\s*\{{(?P<kind>{"|".join(NEVER)})(?P<star>\*?)\}}.*?(?:\\end\s*\{{(?P=kind)(?P=star)\}}|\Z)
        | \$\$.*?(?:\$\$|\Z) | \\\[.*?(?:\\\]|\Z))
    | (?P<math>\$(?:[^$\\\n]|\\.|\n(?!\s*\n)){{1,2000}}?\$ | \\\((?:[^\\\n]|\\[^()]|\n(?!\s*\n)){{1,2000}}?\\\))
    | \\(?P<verb>verb\*?|lstinline(?:\[[^\]\n]*\])?)(?P<quote>[^\sA-Za-z*{{])(?P<quoted>[^\n]*?)(?P=quote)
    | \\(?P<border>begin|end)\s*\{{(?P<environment>[^{{}}\n]*)\}}
    | (?P<open>\{{(?:{_DECLARED})*) | (?P<close>\}}) | (?P<cell>&)
    | \\(?:(?P<name>[A-Za-z]+)\*?[ \t]*(?:\n(?![ \t]*\n)[ \t]*)? | (?P<sign>[^A-Za-z]))
    | (?P<text>(?:[^\\%{{}}$&\n]|\n(?![ \t]*\n))+) | (?P<rest>.)""",
    re.DOTALL | re.VERBOSE,
)
_OPTION = re.compile(r"[ \t]*(?:\n[ \t]*)?(\[((?:[^\[\]{}]|\{[^{}]*\}){0,400})\])")
_PLAIN = re.compile(r"[^\\{}$%&#_^~]*")
_BODY = re.compile(r"\\begin\s*\{document\}")
_TITLE = re.compile(r"\\(?:sub)?title\s*(?:\[[^\]]*\]\s*)?\{")
_ENCODING = re.compile(rb"\\usepackage\s*\[([\w-]+)\]\s*\{inputenc\}")
_ENCODINGS = {"latin1": "latin-1", "ansinew": "cp1252", "utf8x": "utf-8", "applemac": "mac-roman"}
_READ = {"---": "—", "--": "–", "``": "“", "''": "”", "~": "\xa0", "`": "‘"}
_DASHES = re.compile("---|--|``|''|~|`")
_WRITTEN = str.maketrans(
    {other: sign for sign, other in _READ.items()}
    | {sign: f"\\{sign}" for sign in "%&$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "’": "'", "\u202f": "\\,"}
)
_DECLARATION = re.compile(_DECLARED)
_LETTER = re.compile(r"\s*(?:\{(\\?[A-Za-z])\}|(\\[ij](?![A-Za-z])|[A-Za-z]))")
_ARGUMENT = re.compile(r"[ \t]*(?:\n[ \t]*)?\{")
_ESCAPED = re.compile(r"\\([%&$#_{}])")


def read(data: bytes) -> TextDocument:
    """The texts of a document, or of a part of one."""
    named = _ENCODING.search(data)
    declared = named[1].decode() if named else None
    raw, encoding = decode(data, declared and _ENCODINGS.get(declared, declared))
    return TextDocument(raw, sorted(_Reader(raw).segments(), key=lambda one: one.begin), encoding)


class _Reader:
    """Reads a document from left to right.

    Attributes:
        at: where it reads.
        run: what stands since the last block boundary.
        groups: the open groups: ``inline``, ``block`` or ``note``, where each began, and the run around a note.
    """

    def __init__(self, raw: str) -> None:
        self._raw, self._inline = raw, BlockSegments(raw, _escape, trim=True)
        self._at, self._found, self._run = 0, list[Segment](), list[Inline]()
        self._groups, self._tables = list[tuple[str, int, list[Inline]]](), 0
        self._ends = _braces(raw)

    def segments(self) -> list[Segment]:
        body = _BODY.search(self._raw)
        for title in _TITLE.finditer(self._raw, 0, body.start()) if body else ():
            if (end := self._ends.get(title.end() - 1)) is not None:
                self._read(title.end(), end)
        self._read(body.end() if body else int(self._raw.startswith("\ufeff")), len(self._raw))
        return self._found

    def _read(self, begin: int, end: int) -> None:
        self._at = begin
        while self._at < end and (found := _TOKEN.match(self._raw, self._at)):
            self._at = found.end()
            kind = found.lastgroup or ""
            if kind == "environment" and found["border"] == "end" and found[kind].strip() == "document":
                break
            getattr(self, f"_{kind}")(found)
        while self._groups:
            self._close(None)
        self._flush()

    def _flush(self) -> None:
        self._found += self._inline.split(self._run)
        self._run = []

    def _put(self, kind: str, begin: int, text: str = "", written: str = "") -> None:
        self._run.append(Inline(kind, begin, self._at, text, "{", written=written))  # type: ignore[arg-type]

    def _comment(self, found: re.Match[str]) -> None:
        self._put("empty", found.start())

    def _paragraph(self, found: re.Match[str]) -> None:
        self._flush()

    _never = _paragraph
    _cell = _paragraph

    def _math(self, found: re.Match[str]) -> None:
        self._run += keep(found.start(), self._at, found[0])

    def _quoted(self, found: re.Match[str]) -> None:
        self._run += keep(found.start(), self._at, found["quoted"])

    def _text(self, found: re.Match[str]) -> None:
        self._put("text", found.start(), _DASHES.sub(lambda one: _READ[one[0]], found[0]))

    def _rest(self, found: re.Match[str]) -> None:
        self._put("cut", found.start())

    def _open(self, found: re.Match[str]) -> None:
        self._put("open", found.start())
        self._groups.append(("inline", found.start(), []))

    def _close(self, found: re.Match[str] | None) -> None:
        kind, begin, run = self._groups.pop() if self._groups else ("", 0, [])
        if kind in ("block", "note"):
            self._flush()
        if kind == "note":
            self._run = run
            self._put("empty" if found else "cut", begin, written=inner(begin, self._at))
        elif kind != "block" and found:
            self._put("close" if kind else "cut", found.start())

    def _environment(self, found: re.Match[str]) -> None:
        self._flush()
        name = found["environment"].strip().rstrip("*")
        self._tables += (name in TABLES) * (1 if found["border"] == "begin" else -1)
        if found["border"] == "begin":
            self._title()
            for _ in range(ARGUMENTS.get(name, 0)):
                self._argument()
            if name in ("frame", "block"):
                self._group("block")

    def _name(self, found: re.Match[str]) -> None:
        name, begin = found["name"], found.start()
        if name in HEADINGS or name in BLOCKS:
            self._flush()
            self._title()
            if name == "captionof":
                self._argument()
            if name in HEADINGS:
                self._group("block")
        elif name in LEFT:
            self._flush()
            self._option()
            self._arguments()
        elif name in NOTES:
            self._option()
            self._group("note", begin)
        elif name in AROUND:
            self._option()
            for _ in range(AROUND[name]):
                self._argument()
            if not self._group("inline", begin):
                self._put("empty", begin, written=f"{found[0].rstrip()}{{}}")
        elif name in BREAKS:
            self._put("break", begin)
        elif _DECLARATION.fullmatch(found[0]):
            self._put("empty", begin, written="" if found[0][-1:].isspace() else f"{found[0]}{{}}")
        elif name in SIGNS:
            self._at += 2 * self._raw.startswith("{}", self._at)
            self._put("text", begin, SIGNS[name])
        elif name in ACCENTS:
            self._accent(begin, name)
        else:
            self._other(found)

    def _other(self, found: re.Match[str]) -> None:
        """A command that is not known, or has no text."""
        name, begin = found["name"], found.start()
        optional, arguments = self._option(), self._arguments()
        text = _ESCAPED.sub(r"\1", self._raw[slice(*arguments[-1])]) if arguments else ""
        if name in NUMBERS:
            self._run += keep(begin, self._at, "1")
        elif text and (
            name in NOUNS or (name not in SILENT and not optional and len(arguments) == 1 and _PLAIN.fullmatch(text))
        ):
            self._run += keep(begin, self._at, text)
        else:
            self._put("empty", begin, written="" if arguments or found[0][-1:].isspace() else f"{found[0]}{{}}")

    def _sign(self, found: re.Match[str]) -> None:
        sign, begin = found["sign"], found.start()
        if sign in BREAKS:
            self._at += self._raw.startswith("*", self._at)
            self._option()
            if self._tables > 0:
                self._flush()
            else:
                self._put("break", begin)
        elif sign in SIGNS:
            self._put("text", begin, SIGNS[sign])
        elif sign in ACCENTS:
            self._accent(begin, sign)
        else:
            self._put("empty", begin)

    def _accent(self, begin: int, sign: str) -> None:
        if found := _LETTER.match(self._raw, self._at):
            self._at = found.end()
            letter = (found[1] or found[2]).lstrip("\\")
            self._put("text", begin, unicodedata.normalize("NFC", letter + ACCENTS[sign]))
        else:
            self._put("cut", begin)

    def _group(self, kind: str, begin: int = 0) -> bool:
        """Enter the group that follows, if one does."""
        found = _ARGUMENT.match(self._raw, self._at)
        if found is None or found.end() - 1 not in self._ends:
            return False
        self._at = found.end()
        if kind == "inline":
            self._put("open", begin)
        self._groups.append((kind, begin, self._run if kind == "note" else []))
        self._run = [] if kind == "note" else self._run
        return True

    def _argument(self) -> tuple[int, int] | None:
        found = _ARGUMENT.match(self._raw, self._at)
        end = self._ends.get(found.end() - 1) if found else None
        if found is None or end is None:
            return None
        self._at = end + 1
        return found.end(), end

    def _arguments(self) -> list[tuple[int, int]]:
        found = list[tuple[int, int]]()
        while one := self._argument():
            found.append(one)
            self._option()
        return found

    def _option(self) -> tuple[int, int] | None:
        found = _OPTION.match(self._raw, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found.span(2)

    def _title(self) -> None:
        """An option that is a text: a short title, the name of a theorem or of an item."""
        if span := self._option():
            text = self._raw[slice(*span)]
            if _PLAIN.fullmatch(text) and " " in text.strip() and "=" not in text:
                self._found.append(Segment(*span, text, where=self._inline.where(span[0]), escape=_escape))


def _braces(raw: str) -> dict[int, int]:
    """Where the group ends that begins at a brace."""
    found, opened = dict[int, int](), list[int]()
    for token in _TOKEN.finditer(raw):
        if token.lastgroup == "open":
            opened.append(token.start())
        elif token.lastgroup == "close" and opened:
            found[opened.pop()] = token.start()
    return found


def _escape(text: str) -> str:
    return text.translate(_WRITTEN)
