"""The marks within a paragraph of Markdown, each with its place: what markdown-it-py finds, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from regard.documents.blocks import Inline, keep
from regard.documents.formats.html import NEVER
from regard.documents.markup import tokens

Place = tuple[int, int]
_KEPT = re.compile(
    r"""(?P<math>\$\$.+?\$\$|\$(?=\S)[^$]*?[^$\s\\]\$(?!\d))|(?P<footnote>\[\^[^\]\s]{1,100}\])""", re.DOTALL
)
_DIRECTIVE = re.compile(r":{3,}")


def markdown_parser() -> MarkdownIt:
    """A parser of blocks, whose rules within a paragraph say where they found something."""
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.before("fence", "directive", _directive, {"alt": ["paragraph", "blockquote", "list"]})
    rules = parser.inline.ruler
    rules.before("escape", "kept", _kept)
    for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
        rules.at(name, _placed(name, rule))
    return parser


def inlines_of(parser: MarkdownIt, content: str, env: dict[str, Any]) -> Iterator[Inline]:
    """The pieces of text and the marks of a paragraph's content, in order."""
    at = 0
    for token, (begin, end) in _marks(parser, content, env):
        text = content[at:begin]
        if token.type == "hardbreak":
            begin = at + len(text.rstrip(" "))
        if begin > at:
            yield Inline("text", at, begin, content[at:begin])
        yield from _inlines(token, content, begin, end)
        at = end
    if at < len(content):
        yield Inline("text", at, len(content), content[at:])


class _State(StateInline):
    """Remembers where each token was pushed."""

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token


def _marks(parser: MarkdownIt, content: str, env: dict[str, Any]) -> list[tuple[Token, Place]]:
    """Tokens that are no plain text, with their characters."""
    state = _State(content, parser, env, [])
    parser.inline.tokenize(state)
    for rule in parser.inline.ruler2.getRules(""):
        if rule.__name__ != "fragments_join":
            rule(state)
    found = []
    for token in state.tokens:
        if token.type != "text" and "place" in token.meta:
            begin, end = token.meta["place"]
            if token.type == "strong_open":
                begin -= 1
            elif token.type == "strong_close":
                end += 1
            found.append((token, (begin, end)))
    return sorted(found, key=lambda one: one[1])


def _placed(name: str, rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    def placed(state: StateInline, silent: bool) -> bool:
        begin, count = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent and len(state.tokens) > count:
            new = [token for token in state.tokens[count:] if "at" in token.meta]
            if name in ("emphasis", "strikethrough"):
                for token in new:
                    token.meta["place"] = begin, begin + len(token.content)
                    begin += len(token.content)
            elif name == "link" and new:
                new[0].meta["place"], new[-1].meta["place"] = (begin, begin + 1), (new[-1].meta["at"], state.pos)
            elif new:
                new[0].meta["place"] = begin, state.pos
        return True

    return placed


def _inlines(token: Token, content: str, begin: int, end: int) -> Iterator[Inline]:
    kind, _, half = token.type.rpartition("_")
    if token.type == "text_special":
        yield Inline("text", begin, end, token.content)
    elif token.type == "softbreak":
        yield Inline("text", begin, end, " ")
    elif token.type == "hardbreak":
        yield Inline("break", begin, end)
    elif token.type == "html_inline":
        yield from _html(content, begin, end)
    elif token.type in ("code_inline", "math") or token.markup == "autolink":
        text = content[begin + 1 : end - 1] if token.markup == "autolink" else token.content
        yield from keep(begin, end, text)
    elif half in ("open", "close"):
        yield Inline("open" if half == "open" else "close", begin, end, name=kind)
    else:
        yield Inline("empty", begin, end, name=token.type)


def _html(content: str, begin: int, end: int) -> Iterator[Inline]:
    one = next(tokens(content[begin:end], html=True))
    if one.name == "br":
        yield Inline("break", begin, end)
    elif one.kind in ("open", "close"):
        yield Inline("open" if one.kind == "open" else "close", begin, end, name=one.name, kept=one.name in NEVER)
    else:
        yield Inline("empty", begin, end, name=one.name)


def _kept(state: StateInline, silent: bool) -> bool:
    """Formulas, and the marks of footnotes."""
    found = _KEPT.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push(found.lastgroup or "math", "", 0)
        token.content = found[0]
    state.pos = found.end()
    return True


def _directive(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """A line that begins with colons: a directive of MyST, Pandoc or Docusaurus."""
    at = state.bMarks[begin] + state.tShift[begin]
    if not _DIRECTIVE.match(state.src, at, state.eMarks[begin]):
        return False
    if not silent:
        state.line = begin + 1
        state.push("directive", "", 0)
    return True
