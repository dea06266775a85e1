"""What translations must contain, keep and avoid: terms of texts as tokens for the search, and what came of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from regard.config import Recipe
from regard.data.batches.batch import Ids
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.terms import Form, Letters, Term, Terms
from regard.system.errors import Option, UsageError, notice
from regard.tasks.text.task import LINES, decode_with_offsets
from regard.text.language_tokens import Direction
from regard.text.languages import WITHOUT_SPACES, primary
from regard.text.terms import KEEP, NO_TERMS, PROTECTED, Phrases, TermList, count, is_letter, listed_lines, phrase
from regard.text.terms import Found as FoundPhrase
from regard.text.tokenizers.vocabulary import AnyTokenizer

ROUNDS = 20
"""Searches at most for a translation without what is forbidden."""
_WIDE = re.compile(r"\s{2,}|[^\S\xa0\u2009\u202f]")
"""Space that says no more than a space; one that does not break may hold a number together."""
Found = list[list[Hypothesis]]


@dataclass(frozen=True)
class WantedTerm:
    """A term that a text has: its source as it stands there, what its translation has one of, and how often."""

    source: str
    forms: tuple[str, ...]
    times: int = 1

    def __str__(self) -> str:
        return f"{self.source!r} → {'|'.join(self.forms)!r}" + (f" {self.times} times" if self.times > 1 else "")


@dataclass(frozen=True)
class Terminology:
    """What translations contain and what they do not.

    Args:
        terms: where a text has a source of these, its translation has one of the forms.
        protect: numbers, addresses, placeholders and tags of a text come out unchanged.
        forbidden: words and phrases of no translation; in small letters in any case.

    Raises:
        UsageError: a term's forms are all forbidden.
    """

    terms: TermList = NO_TERMS
    protect: bool = False
    forbidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        banned = Phrases(self.forbidden, True)
        for entry in self.terms.entries if self.forbidden else ():
            if KEEP not in entry.forms and all(any(banned.find(form)) for form in entry.forms):
                message = f"all forms of the term {entry.source!r} are forbidden; change one of the lists"
                raise UsageError(message, Option("forbid"))

    @classmethod
    def read(
        cls, terms: Path | None = None, protect: bool = False, forbid: Path | None = None, own: TermList | None = None
    ) -> Terminology:
        """That of files: a list of terms, or else ``own``, and one of words and phrases, a line each.

        Raises:
            RegardError: a file cannot be read, or a line of it is none.
        """
        lines = enumerate(map(str.strip, listed_lines(forbid)), 1) if forbid else ()
        banned = tuple(phrase(line, f"{forbid}:{number}") for number, line in lines if line and line[0] != "#")
        return cls(TermList.read(terms) if terms else own or NO_TERMS, protect, banned)

    def __bool__(self) -> bool:
        return bool(self.terms.entries or self.protect or self.forbidden)

    def find(self, text: str, language: str, taken: Sequence[tuple[int, int]] = ()) -> Iterator[FoundPhrase]:
        """The sources of terms in a text, as :meth:`~regard.text.terms.Phrases.find` has it."""
        return self.terms.sources[has_spaces(language)].find(re.sub(r"\s", " ", text), taken)

    def wanted(self, text: str, language: str) -> list[WantedTerm]:
        """The terms of a text in a language, in the order of the text."""
        text, entries = _WIDE.sub(" ", unicodedata.normalize("NFC", text)).strip(), self.terms.entries
        taken = [one.span() for one in PROTECTED.finditer(text)]  # no part of a number or address is a term
        found: list[tuple[int, str, tuple[str, ...]]] = []
        for one in self.find(text, language, taken) if entries else ():
            source = " ".join(text[one.begin : one.end].split())
            written = (source if form == KEEP else form for form in entries[one.place].forms)
            found.append((one.begin, source, tuple(dict.fromkeys(written))))
            taken = [(begin, end) for begin, end in taken if end <= one.begin or one.end <= begin]
        found += [(begin, text[begin:end], (text[begin:end],)) for begin, end in taken if self.protect]
        named, number = dict[tuple[str, ...], str](), dict[tuple[str, ...], int]()
        for _, source, forms in sorted(found):
            named.setdefault(forms, source)
            number[forms] = number.get(forms, 0) + 1
        return [WantedTerm(source, forms, number[forms]) for forms, source in named.items()]

    def count_misses(self, text: str, translation: str, direction: Direction, soft: bool) -> int:
        """How many terms a translation lacks, unless they are ``soft``, and how often it has what is forbidden."""
        output, spaced = unicodedata.normalize("NFC", translation), has_spaces(direction[1])
        wanted = () if soft else self.wanted(text, direction[0])
        lacks = sum(count(one.forms, output, spaced) < one.times for one in wanted)
        return lacks + len(list(Phrases(self.forbidden, spaced).find(output)))


def has_spaces(language: str) -> bool:
    """Whether a language has spaces between words."""
    return primary(language) not in WITHOUT_SPACES


class FormTokens:
    """The tokens of a term's forms.

    Args:
        tokenizer: of the translations.
        never: tokens that no translation has.
        spaced: whether there is space between words.
    """

    def __init__(self, tokenizer: AnyTokenizer, never: Sequence[int], spaced: bool) -> None:
        self._tokenizer, self._never, self._before = tokenizer, frozenset(never), "x " if spaced else "、"
        self._base = tokenizer.ids_batch([self._before.strip()])[0].tolist()
        names = ["" if alone else tokenizer.piece(id) for id, alone in enumerate(tokenizer.alone_V.tolist())]
        part = [bool(name) and tokenizer.is_byte(id) for id, name in enumerate(names)]
        sides = [[bool(name) and is_letter(name[side], spaced) for name in names] for side in (0, -1)]
        self.letters = Letters(*(np.array(side) | np.array(part) for side in sides))

    def of(self, form: str) -> tuple[Form, ...]:
        """Those of a form behind a space or another character, and at the beginning; none if it cannot be written."""
        behind, first = (ids.tolist() for ids in self._tokenizer.ids_batch([self._before + form, form]))
        forms = [behind[len(self._base) :]] if behind[: len(self._base)] == self._base else []
        able = (ids for ids in [*forms, first] if ids and self._never.isdisjoint(ids))
        return tuple(dict.fromkeys(tuple(ids) for ids in able if self._tokenizer.decode(ids).strip() == form))


form_tokens = lru_cache(maxsize=4)(FormTokens)
"""Those of a tokenizer, made once."""


class TermSearch:
    """Searches for translations of parts of texts that keep to a terminology, and says what does not.

    Args:
        own: the terminology.
        recipe: of the translator.
        symbols: of its search.
        tokenizer: of its translations.
        direction: both languages.

    Raises:
        UsageError: the model keeps to a list of likely pieces, or the beam is divided into groups.
    """

    def __init__(
        self, own: Terminology, recipe: Recipe, symbols: Symbols, tokenizer: AnyTokenizer, direction: Direction
    ) -> None:
        if recipe.decoding.shortlist:
            raise UsageError("terms may need pieces outside of it; leave one of both out", "decoding.shortlist")
        if recipe.decoding.groups > 1:
            folder = f"an empty file as {Option('terms')} leaves out those of the folder"
            message = f"groups of a beam keep no terms and no forbidden words; leave out one of both ({folder})"
            raise UsageError(message, "decoding.groups")
        self._own, self._recipe, self._tokenizer, self._source = own, recipe, tokenizer, direction[0]
        self._spaced, self._skip = has_spaces(direction[1]), len(symbols.prefix)
        self._tokens = form_tokens(tokenizer, symbols.without, self._spaced)
        self._banned = Phrases(own.forbidden, self._spaced)

    def __call__(
        self, sources: Sequence[Ids], texts: Sequence[str], numbers: Sequence[int], search: Callable[..., Found]
    ) -> Found:
        """What is found.

        Args:
            sources: the ids of parts of texts.
            texts: these parts.
            numbers: of each, its line in it.
            search: from places of parts, the ``terms`` of each and what is ``forbidden`` in it to their outputs.
        """
        lines, some = [number % LINES for number in numbers], list[list[tuple[WantedTerm, Term]]]()
        for source, text, line in zip(sources, texts, lines, strict=True):
            written = list(self._writable(self._own.wanted(text, self._source), line))
            some.append(self._fitting(written, self._room(len(source)), line))
        terms = [Terms(tuple(term for _, term in one), self._tokens.letters) if one else None for one in some]
        found = self._without_forbidden(search(range(len(terms)), terms=terms), terms, search)
        for line, one, outputs in zip(lines, some, found, strict=True):
            self._tell(line, one, outputs[0])
        return found

    def _without_forbidden(self, found: Found, terms: list[Terms | None], search: Callable[..., Found]) -> Found:
        """The same, searched for again where something forbidden is in it, without the tokens that it is in."""
        places, found = list(range(len(terms))), list(found)
        banned: list[set[Form]] = [set() for _ in places]
        for _ in range(ROUNDS if self._own.forbidden else 0):
            places = [place for place in places if self._ban(found[place], banned[place])]
            if not places:
                break
            forbidden = [tuple(sorted(banned[place])) for place in places]
            again = search(places, terms=[terms[place] for place in places], forbidden=forbidden)
            for place, outputs in zip(places, again, strict=True):
                found[place] = outputs
        return found

    def _room(self, source: int) -> float:
        """How many tokens an output may have in which terms stand, its end counted."""
        decoding, places = self._recipe.decoding, getattr(self._recipe.model, "known_positions", np.inf)
        most = np.inf if decoding.max_length is None else decoding.max_length - self._skip
        return float(min(most, places - source - decoding.max_extra))

    def _writable(self, wanted: list[WantedTerm], line: int) -> Iterator[tuple[WantedTerm, Term]]:
        """The terms of a text that have a form which pieces spell, and which is not forbidden."""
        for one in wanted:
            allowed = [form for form in one.forms if not any(self._banned.find(form))]
            if forms := tuple(dict.fromkeys(ids for form in allowed for ids in self._tokens.of(form))):
                yield one, Term(forms, one.times)
            else:
                notice(f"line {line}: no form of the term {one} can be written, so it is left out")

    def _fitting(self, some: list[tuple[WantedTerm, Term]], room: float, line: int) -> list[tuple[WantedTerm, Term]]:
        """The first of these terms that an output has room for."""
        while some and Terms(tuple(term for _, term in some), self._tokens.letters).banks > room:
            notice(f"line {line}: there is no room for the term {some[-1][0]}, so it is left out")
            some = some[:-1]
        return some

    def _ban(self, outputs: Sequence[Hypothesis], banned: set[Form]) -> bool:
        """Whether outputs have what is forbidden; the tokens that they have it in are banned."""
        before = len(banned)
        for tokens in (one.tokens[self._skip :] for one in outputs):
            text, read = decode_with_offsets(self._tokenizer, tokens, ())
            for one in self._banned.find(text):
                ids = [id for id, begin, end in read if begin < one.end and one.begin < end]
                banned.add(tuple(ids))
        return len(banned) > before

    def _tell(self, line: int, some: list[tuple[WantedTerm, Term]], best: Hypothesis) -> None:
        """Say what a translation lacks, and what it has although it is forbidden."""
        text = unicodedata.normalize("NFC", self._tokenizer.decode(best.tokens))
        for one, _ in some if not self._recipe.decoding.term_bonus else ():
            if count(one.forms, text, self._spaced) < one.times:
                notice(f"line {line}: the output lacks the term {one}; other rules or terms leave no room for it")
        for found in self._banned.find(text):
            notice(f"line {line}: {text[found.begin : found.end]!r} is forbidden; no output was found without it")
