"""Test scores formatted as lines of text, by task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from regard.explore.pictures.table import fit
from regard.text.terminal_cells import visible, width

if TYPE_CHECKING:
    from regard.tasks.classification.predictions import ClassEvaluation
    from regard.tasks.language.scores import Perplexity, PredictionScores
    from regard.tasks.metrics.bleu import TranslationScores
    from regard.tasks.metrics.labels import ClassScores, LabelScores, NumberScores
    from regard.tasks.metrics.spans import Counts, TagScores

WIDEST = 40
"""Most characters of a label's column."""
SHOWN = 5
"""Most labels named in a sentence."""


def bleu_lines(scores: TranslationScores) -> list[str]:
    """Scores of a translator."""
    lines = []
    for name, value, interval, signature in (
        ("BLEU", scores.bleu, scores.bleu_interval, scores.bleu_signature),
        ("chrF", scores.chrf, scores.chrf_interval, scores.chrf_signature),
    ):
        span = f"  (95 %: {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
        lines.append(f"{name} {value:5.2f}{span}  {signature}")
    return lines


def class_lines(found: ClassEvaluation) -> list[str]:
    """Scores of a classifier."""
    from regard.tasks.metrics.labels import ClassScores, LabelScores

    if isinstance(found.scores, ClassScores):
        lines = _single_label_lines(found.scores)
    elif isinstance(found.scores, LabelScores):
        lines = _multi_label_lines(found.scores)
    else:
        lines = _regression_lines(found.scores)
    if found.calibration_error is not None:
        lines.append(f"calibration error {found.calibration_error:.3f}")
    if scope := found.scope:
        outside = f": recall {scope.recall:.2f}, F1 {scope.f1:.2f}" if scope.recall or scope.f1 else ""
        lines.append(
            f"out of scope below probability {scope.value:.3f}{outside}; in scope {scope.in_scope_accuracy:.2f}, "
            f"all {scope.accuracy:.2f} treated rightly"
        )
    if found.unknown:
        count = sum(found.unknown.values())
        lines.append(
            f"{count:,} have a label that nothing was learned of, and count as wrong: {_label_list(found.unknown)}"
        )
    if found.unlabelled:
        lines.append(f"{found.unlabelled:,} have no label, and are left out")
    if found.empty:
        lines.append(f"{found.empty:,} are empty, and are left out")
    if not isinstance(found.scores, ClassScores | LabelScores):
        return lines
    lines += ["", *table(found.scores.classes, "label", "there")]
    if isinstance(found.scores, ClassScores) and (confused := found.scores.confusions()):
        pairs = (f"{visible(label)} as {visible(said)} {count:,}" for label, said, count in confused)
        lines += ["", f"taken for another most often: {'; '.join(pairs)}"]
    return lines


def _single_label_lines(scores: ClassScores) -> list[str]:
    right = int(scores.confusion_CC.trace())
    return [f"accuracy {scores.accuracy:.2f}  ({right:,} of {scores.texts:,})", f"macro F1 {scores.macro_f1:.2f}"]


def _multi_label_lines(scores: LabelScores) -> list[str]:
    micro = scores.micro
    return [
        f"F1 {micro.f1:.2f}  (precision {micro.precision:.2f}, recall {micro.recall:.2f})",
        f"macro F1 {scores.macro_f1:.2f}",
        f"all labels right {scores.exact:.2f}",
    ]


def _regression_lines(scores: NumberScores) -> list[str]:
    return [
        f"root of the mean squared error {scores.mean_squared_error**0.5:.4g}  ({scores.texts:,} texts)",
        f"Pearson's correlation {scores.pearson:.4f}",
        f"Spearman's correlation {scores.spearman:.4f}",
    ]


def _label_list(labels: Mapping[str, int]) -> str:
    names = sorted(labels, key=lambda label: -labels[label])
    return ", ".join(map(visible, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")


def tag_lines(scores: TagScores) -> list[str]:
    """Scores of a tagger."""
    lines = [f"accuracy of tags {scores.accuracy:.2f}  ({scores.words:,} words)"]
    if scores.spans is None:
        return lines
    parts = {"F1": scores.spans.spans, "F1 of boundaries alone": scores.spans.boundaries}
    if scores.spans.surface:
        parts["F1 of surface forms"] = scores.spans.surface
    told = [
        f"{name} {counts.f1:.2f}  (precision {counts.precision:.2f}, recall {counts.recall:.2f})"
        for name, counts in parts.items()
    ]
    return [*told, *lines, "", *table(scores.spans.types, "type", "there")]


def perplexity_lines(found: Perplexity) -> list[str]:
    """Scores of a language model."""
    nats = found.nats / max(1, found.tokens)
    return [
        f"perplexity of a token {found.per_token:.2f}  ({found.tokens:,} tokens, {nats:.4f} nats each)",
        f"perplexity of a word {found.per_word:.2f}  ({found.words:,} words)",
        f"bits a byte {found.bits_per_byte:.4f}  ({found.bytes:,} bytes)",
    ]


def guess_lines(found: PredictionScores) -> list[str]:
    """Scores of a masked-language or span-corruption model."""
    loss = f"loss {found.loss:.4f} nats a hidden token  ({found.tokens:,} tokens)"
    lines = [loss, f"perplexity of a hidden token {found.perplexity:.2f}"]
    return lines if found.right is None else [*lines, f"guessed right {found.accuracy:.2f} %  ({found.right:,})"]


def table(rows: Mapping[str, Counts], what: str, there: str) -> list[str]:
    """Precision, recall, F1 and support of each label; labels neither present nor predicted are left out."""
    kept = {visible(label): counts for label, counts in rows.items() if counts.gold or counts.predicted}
    room = min(WIDEST, max([width(what), *map(width, kept)], default=0))
    lines = [f"{fit(what, room)}  precision  recall      F1  {there:>7}"]
    for label, counts in kept.items():
        scores = f"{counts.precision:9.2f}  {counts.recall:6.2f}  {counts.f1:6.2f}  {counts.gold:7,}"
        lines.append(f"{fit(label, room)}  {scores}")
    return lines
