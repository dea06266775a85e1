"""What the page says of a model without its weights: task, title, stacks, positions, and example texts to try."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from regard.config import Recipe
from regard.config.families import Model, Recurrent, VitSection
from regard.data.prepare.shards import Shards
from regard.inspection.folders.training_curves import LOG, parse_line
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.language_tokens import LanguageTokens
from regard.text.languages import UNKNOWN, primary
from regard.text.lines import replace_surrogates
from regard.text.tokenizers.vocabulary import TOKENIZER, read_tokenizer

TEXTS = 64
"""Most texts read."""
READ = (".json", ".safetensors", ".toml")
"""Endings of the files of a model."""
LONG = 4
"""Letters of a content word, about; shorter words are masked only if there is no other."""
TWICE = 7
"""Words of a sentence from which on two are masked."""
Piece = Callable[[str, bool], bool]
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
MOST, SHORT = 6, 160
"""Number of examples, and most characters of each; fewer if the model reads fewer."""
PRONOUNS, OTHERS, DRAWN = 2, 2, 60
"""Sentences of the demonstration: with a pronoun, without one, and how many to draw to find them."""
FIRST = 1 << 16
"""Bytes of a validation set to search for its first sentences."""
TAIL = 1 << 22
"""Bytes at the end of a log to search for its newest samples."""
PROBED = 20
"""Sentences of the grammar by which a model of the demonstration is told from others of its sizes."""
SIZES = ((2, 1, 128, 2400), (3, 4, 128, 2400), (2, 4, 64, 2400), (1, 0, 64, 2400))
"""Encoder layers, heads, d_model, vocabulary of the demonstration's model, today's first, then of the shipped ones."""
GAP = "[MASK]"
LOST = "\ufffd"
"""Replacement for invalid bytes, where a character was cut."""
PLAIN = "The old cat [MASK] on the green mat."
"""Fallback example with a gap."""
_SAMPLE = b'{"kind": "sample"'
LANGUAGES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "hi": "Hindi", "hu": "Hungarian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
NOTHING: dict[str, object] = {
    "task": "", "family": "", "title": "Model in training", "kinds": {}, "stacks": [], "d_model": 0, "divisor": 1,
    "positions": False, "masked": [], "max_tokens": 0, "reads": "text", "writes": "nothing", "sides": [],
    "labels": None, "languages": None, "keeps": "best", "image": None, "harder": {},
}  # fmt: skip
"""The same for a model whose recipe is not written yet."""


@dataclass(frozen=True)
class ValidationTexts:
    """The first texts of a validation set.

    Args:
        texts: as they are, nothing left out.
        common: words that stand in more than half of them: they say the least.
        piece: whether a word is a single piece, after a space or (``False``) at the start of a text.
    """

    texts: Sequence[str]
    common: Collection[str]
    piece: Piece


def refuse_irregular(folder: Path, endings: Collection[str] | None = READ) -> None:
    """Raise a RegardError if a file that would be read from a folder, with one of these endings, is no regular file."""
    for path in sorted(folder.glob("*")):
        if (endings is None or path.suffix in endings) and os.path.exists(path) and not os.path.isdir(path):
            disk.refuse_irregular(path)


def validation_examples(folder: Path) -> ValidationTexts | None:
    """The validation texts that a model's run prepared; ``None`` if they are gone.

    Args:
        folder: of the model, with its run.
    """
    data = folder / "training" / "data"
    try:
        refuse_irregular(data, None)
        tokenizer = read_tokenizer(data / TOKENIZER)
        side = Shards(data, disk.json_of(data / "index.json")["sides"]["validation.text"])
        texts = [tokenizer.decode(side.sentence(number).tolist()) for number in range(min(TEXTS, side.count))]
    except (OSError, ValueError, KeyError, IndexError, TypeError, RegardError):  # old files may be damaged in any way
        return None
    there = Counter(word for text in texts for word in set(_WORD.findall(text)))
    common = {word for word, count in there.items() if 2 * count > len(texts)}
    return ValidationTexts(
        texts, common, lambda word, behind: len(tokenizer.encode(f" {word}" if behind else word).ids) == 1
    )


def make_cloze(line: str, seed: str, common: Collection[str], piece: Piece) -> str | None:
    """Replace one or two words of a sentence by gaps, chosen by a seed; ``None`` if impossible.

    Args:
        line: a sentence.
        seed: anything; the same gives the same.
        common: words that are left out only where there are no others.
        piece: whether a word is a single piece; only such are left out.
    """
    words = list(_WORD.finditer(line))
    can = [word for word in words if piece(word.group(), word.start() > 0)]
    telling = [word for word in can if len(word.group()) >= LONG and word.group() not in common] or can
    if len(words) < 2 or not telling:
        return None
    drawn = Random(seed).sample(telling, min(len(telling), 1 + (len(words) >= TWICE)))
    for word in sorted(drawn, key=lambda one: -one.start()):
        line = line[: word.start()] + "[MASK]" + line[word.end() :]
    return line


def examples(folder: Path, recipe: Recipe) -> list[str]:
    """Up to six short texts for a model; none for image models or if nothing is known."""
    info = recipe.info
    if info.reads == "image":
        return []
    if is_demo(folder, recipe):
        return _demo_sentences(recipe.seed)
    with_gaps = info.reads == "gapped"
    if with_gaps and (made := list(islice(dict.fromkeys(_cloze_examples(folder, recipe)), MOST))):
        return made
    texts = (*_samples(folder / LOG), *_validation_sentences(folder))
    shown = dict.fromkeys(line for line in _readable_lines(texts, recipe) if GAP in line or not with_gaps)
    found = list(islice(shown, MOST))
    return found or ([PLAIN] if with_gaps else [])


def _readable_lines(texts: Iterable[str], recipe: Recipe) -> Iterator[str]:
    """The readable lines of texts, each shortened.

    In a window of running text the first and last are incomplete and left out.
    """
    most = SHORT
    if recipe.text.units == "characters":  # no more than its context, with room to continue
        limit = recipe.data.max_tokens
        most = max(1, min(SHORT, limit - 2 - (limit // 4 if recipe.info.writes == "continuation" else 0)))
    for text in texts:
        lines = [line.strip() for line in replace_surrogates(text).split("\n")]
        for line in lines[1:-1] if len(lines) > 2 else [max(lines, key=len)]:
            short = line if len(line) <= most else line[:most].rpartition(" ")[0] or line[:most]
            if short and LOST not in short:
                yield short


def _cloze_examples(folder: Path, recipe: Recipe) -> Iterator[str]:
    """Validation sentences of a model of masked words, with gaps."""
    held = validation_examples(folder)
    if held is None:
        return
    for number, line in enumerate(_readable_lines(held.texts, recipe)):
        found = make_cloze(line, f"{recipe.seed} {number}", held.common, held.piece)
        if found is not None:
            yield found


def is_demo(folder: Path, recipe: Recipe) -> bool:
    """Whether a model is one that ``regard demo`` made: it has the sizes, and saw the words of the grammar."""
    if not is_demo_recipe(recipe):
        return False
    from regard.runs.demo.grammar import generate
    from regard.text.confidence import read_seen_words

    try:
        seen = read_seen_words(folder)
    except RegardError:
        return False
    said = [pair.source for pair in generate("valid", PROBED, recipe.seed)]
    # models of earlier versions do not say; few words are too rare for a small corpus of the grammar
    return seen is None or sum(not seen.unseen_words(source) for source in said) > PROBED / 2


def is_demo_recipe(recipe: Recipe) -> bool:
    """Whether a model has the sizes of the one that ``regard demo`` makes."""
    model, text = recipe.model, recipe.text
    sizes = (getattr(model, "encoder_layers", 0), getattr(model, "heads", 0), model.d_model, text.vocabulary)
    languages = (text.source_language, text.target_language)
    return recipe.info.learns_from == "pairs" and languages == ("en", "de") and sizes in SIZES


def _demo_sentences(seed: int) -> list[str]:
    """The classic two sentences, then test sentences: some with a gender-marked pronoun, some without one."""
    from regard.runs.demo.grammar import classic, generate

    pairs = list(generate("test", DRAWN, seed))
    telling = [pair for pair in pairs if pair.pronoun and pair.pronoun.decides]
    others = [pair for pair in pairs if not pair.pronoun]
    return [pair.source for pair in (*classic(), *telling[:PRONOUNS], *others[:OTHERS])]


def _samples(log: Path) -> Iterator[str]:
    """The sources of the newest samples in a log, newest first."""
    try:
        with disk.open_binary(log) as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = [line for line in file.read().split(b"\n") if line.startswith(_SAMPLE)]
    except RegardError:
        return
    for line in reversed(lines):
        source = (parse_line(line) or {}).get("source")
        if isinstance(source, str):
            yield source


def _validation_sentences(folder: Path) -> Iterator[str]:
    """The first validation sentences of a translator that has logged no samples yet."""
    from regard.data.prepare.folder import VALIDATION

    try:
        with disk.open_binary(folder / "training" / "data" / VALIDATION[0]) as file:
            begin = file.read(FIRST)
    except RegardError:
        return
    yield from islice(begin.decode(errors="replace").split("\n"), MOST)


def facts(recipe: Recipe, assets: Any) -> dict[str, object]:
    """The facts a page needs about a model, wherever it is stored."""
    section, image = recipe.model, None
    if isinstance(section, VitSection):
        sizes = {name: getattr(section, name) for name in ("height", "width", "channels", "patch")}
        image = {**sizes, "largest": assets.scale.largest}
    return {
        "task": recipe.task,
        "family": section.family,
        "title": title(recipe),
        "kinds": {kind: list(sizes) for kind, sizes in section.attention.items()},
        "stacks": [] if isinstance(section, Recurrent) else list(dict.fromkeys(section.info.stacks.values())),
        "d_model": section.d_model,
        "divisor": max(map(section.divisor_of, section.attention), default=1.0),
        "positions": positions_of(section) != "none",
        "masked": ["decoder"] if "decoder" in section.attention else [],
        "max_tokens": section.known_positions if image else recipe.data.max_tokens,
        "reads": recipe.info.reads,
        "writes": recipe.info.writes,
        "sides": sides(recipe),
        "labels": list(assets.labels) if recipe.info.has_labels else None,
        "languages": languages(recipe, assets),
        "keeps": "newest" if recipe.training.select == "last" else "best",
        "image": image,
        "harder": regularisation(recipe),
    }


def regularisation(recipe: Recipe) -> dict[str, float]:
    """The regularisation by which the training loss differs from the validation loss; non-zero values by name."""
    classes = recipe.info.writes == "classes"
    several = classes and recipe.classification.kind != "single"
    smoothing = 0.0 if several else recipe.training.label_smoothing
    shares = {
        "label_smoothing": smoothing,
        "dropout": recipe.model.dropout,
        "adversarial": recipe.classification.adversarial,
    }
    return {name: share for name, share in shares.items() if share}


def languages(recipe: Recipe, assets: Any) -> list[list[str]] | None:
    """What a translator of several is told, the usual first: languages of sources that have tokens, and of targets."""
    known: LanguageTokens | None = getattr(assets, "languages", None)
    if known is None:
        return None
    usual = known.find(recipe.text.source_language, recipe.text.target_language)
    read, written = (sorted(known.ids, key=lambda code: code != one) for one in usual)
    return [read if known.begins else [], written]


def title(recipe: Recipe) -> str:
    """A model in a few words."""
    codes = recipe.text.source_language, recipe.text.target_language
    if recipe.info.learns_from != "pairs" or UNKNOWN in codes:
        return recipe.info.title
    return " → ".join(LANGUAGES.get(primary(code), code) for code in codes)


def positions_of(section: Model, stack: str = "") -> str:
    """The kind of positional encoding, of a decoder with a section of its own that of it; none for recurrent models."""
    own = getattr(section, "decoder", section) if stack == "decoder" else section
    return getattr(own, "positions", "none")


def sides(recipe: Recipe) -> list[str]:
    """The embedding tables: source, and target if it is another text."""
    info = recipe.model.info
    return list(info.stacks) if info.reads_pieces else []
