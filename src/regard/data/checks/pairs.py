"""Checks of parallel corpora: empty, duplicate, misaligned and leaked pairs (``regard check``).

One streaming pass, a few dozen bytes of memory a pair, and a short second pass for examples. What a vocabulary makes of
the text is judged by a sample of the pairs, and of each text by its first ``LONGEST`` characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from regard.data.checks.findings import EXAMPLES, Finding, Report, Severity, excerpt, percent, sort_findings
from regard.data.checks.line_patterns import KINDS, pattern_finding
from regard.data.checks.scan_pairs import PairScan, characters_per_token, count_unknown_words
from regard.data.corpora.pairs import Corpus, Pair
from regard.data.corpora.passes import EMPTY_HASH, Progress, no_progress
from regard.system.errors import RegardError
from regard.text.tokenizers.tokenizer import LONGEST
from regard.text.tokenizers.vocabulary import Vocabularies, learn_vocabularies, sample

SAMPLE = 10_000
FEW = 1000


def check_pairs(
    corpora: Sequence[Corpus],
    others: Mapping[str, Corpus] | None = None,
    max_tokens: int = 256,
    vocabularies: Vocabularies | None = None,
    seed: int = 1,
    progress: Progress = no_progress,
) -> Report:
    """Check parallel corpora; all findings and a verdict.

    Args:
        corpora: the training data.
        others: validation and test corpora by name, searched for in the training corpora.
        max_tokens: longer pairs would be left out.
        vocabularies: an existing one that would be used; default: one is quickly learned.
        seed: of the sample.
        progress: reports progress.
    """
    looks: list[PairScan] = []
    findings: list[Finding] = []
    for corpus in corpora:
        look, kept = PairScan(corpus), []
        try:
            begun = ((source[:LONGEST], target[:LONGEST]) for source, target in look.pairs(progress))
            kept = sample(enumerate(begun), SAMPLE, seed)
        except RegardError as error:
            findings.append(_unreadable(error, look))
        known = vocabularies or (learn_vocabularies([pair for _, pair in kept], 8000) if kept else None)
        per_token = characters_per_token([pair[0] for _, pair in kept[:1000]], known.source) if known else 4.0
        findings += look.findings(max_tokens, per_token)
        findings += _unknown_characters(look, kept, known) if known else []
        looks.append(look)
    pairs = sum(look.count for look in looks)
    findings += _sizes(pairs, bool(findings))
    findings += _duplicates(looks)
    for name, other in (others or {}).items():
        findings += _leaks(name, other, looks, progress)
    source, target = (float(np.concatenate([look.lengths(side) for look in looks]).sum()) for side in (0, 1))
    return Report(pairs, source / max(1, pairs), target / max(1, pairs), sort_findings(findings))


def _unknown_characters(look: PairScan, kept: Sequence[tuple[int, Pair]], vocabularies: Vocabularies) -> list[Finding]:
    """Words of the sample with a character that is not in the vocabulary."""
    sides = [
        count_unknown_words([pair[side] for _, pair in kept], tokenizer)
        for side, tokenizer in enumerate((vocabularies.source, vocabularies.target))
    ]
    words, hits = sum(words for words, _ in sides), sum(fell.total() for _, fell in sides)
    share = hits / max(1, words)
    if share < 0.001:
        return []
    seen = ", ".join(repr(excerpt(word)) for _, fell in sides for word, _ in fell.most_common(3))
    sentence = KINDS["bytes"].sentence.format(share=percent(share)) + f" For example {seen}."
    places = (
        (number, side, pair[side])
        for number, pair in kept
        for side in (0, 1)
        if not sides[side][1].keys().isdisjoint(pair[side].split())
    )
    examples = tuple(look.example(*place) for place in islice(places, EXAMPLES))
    return [Finding("bytes", KINDS["bytes"].severity(share), hits, share, examples, sentence)]


def _unreadable(error: RegardError, look: PairScan) -> Finding:
    file, _, line = (error.where or look.corpus.name).rpartition(":")
    place = (file, int(line), "") if file and line.isdigit() else (error.where or look.corpus.name, 0, "")
    kind = "misaligned" if "lines, but" in error.message else "unreadable"
    return Finding(kind, "fatal", 1, 1.0, (place,), str(error) if str(error)[-1:] in ".?!" else f"{error}.")


def _sizes(pairs: int, already: bool) -> list[Finding]:
    if pairs == 0:
        return [] if already else [Finding("no pairs", "fatal", 0, 1.0, (), "The corpus holds no sentence pairs.")]
    if pairs == 1:
        return [Finding("few pairs", "fatal", 1, 1.0, (), "A single pair is not enough to learn from.")]
    if pairs < FEW:
        sentence = f"{pairs} pairs are too few to learn to translate; a small domain needs some ten thousand."
        return [Finding("few pairs", "warning", pairs, 1.0, (), sentence)]
    return []


def _duplicates(looks: Sequence[PairScan]) -> list[Finding]:
    """Pairs that occur more than once in all corpora together."""
    hashes = np.concatenate([look.pair_hashes() for look in looks])
    hits = np.concatenate([look.non_empty() for look in looks])
    hits[np.unique(hashes, return_index=True)[1]] = False
    if not hits.any():
        return []
    parts = np.split(hits, np.cumsum([look.count for look in looks])[:-1])
    examples = (one for look, part in zip(looks, parts, strict=True) for one in look.examples(np.flatnonzero(part)))
    return [pattern_finding("duplicate", int(hits.sum()), len(hits), tuple(islice(examples, EXAMPLES)))]


def _leaks(name: str, other: Corpus, looks: Sequence[PairScan], progress: Progress) -> list[Finding]:
    """Sentences of a validation or test corpus that are in the training corpora too."""
    look = PairScan(other)
    try:
        for _ in look.pairs(progress):
            pass
    except RegardError as error:
        return [_unreadable(error, look)]
    found = []
    trained = [np.concatenate([one.hashes(side) for one in looks]) for side in (0, 1)]
    source, target = (np.isin(look.hashes(side), trained[side]) & (look.hashes(side) != EMPTY_HASH) for side in (0, 1))
    pairs = np.isin(look.pair_hashes(), np.concatenate([one.pair_hashes() for one in looks])) & source
    for kind, hits, noun in (
        ("leak", pairs, "pairs"),
        ("sentence leak", (source | target) & ~pairs, "single sentences"),
    ):
        if count := int(hits.sum()):
            share = count / max(1, look.count)
            severity: Severity = "note" if kind == "sentence leak" else "fatal" if share >= 0.2 else "warning"
            sentence = (
                f"{count} {noun} ({percent(share)}) of {name} are in the training data too: scores will be too high."
            )
            found.append(Finding(kind, severity, count, share, look.examples(np.flatnonzero(hits)), sentence))
    return found
