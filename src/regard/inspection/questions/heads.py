"""What each head does over many texts or images: those of a folder, their counts as time allows, and the statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from regard.inspection.folders.facts import examples, is_demo, is_demo_recipe, validation_examples
from regard.inspection.folders.folder import Folder
from regard.inspection.folders.models import Models
from regard.inspection.forward.head_functions import (
    OF_IMAGES,
    OF_TEXTS,
    Antecedent,
    HeadCounts,
    HeadMetrics,
    KindRecord,
    PatchPositions,
    count_heads,
    count_patches,
)
from regard.inspection.forward.head_statistics import CONFIDENCE, EXCESS, HeadStatistics, head_statistics
from regard.inspection.forward.passes import TEXTS, WEIGHTS, TextExample, record_texts
from regard.inspection.forward.record import Kind
from regard.inspection.questions.attribution import values_in_time
from regard.inspection.requests import UNCHANGED, AblationRequest, Answer, Changes, ModelRequest, check_finite, question
from regard.system.errors import RegardError
from regard.tasks.kinds import reads_image

if TYPE_CHECKING:
    from regard.data.corpora.images import Pixels
    from regard.tasks.images.classifier import ImageClassification
    from regard.tasks.protocols import Task

SECONDS = 2.0
"""How long the page waits for a piece of an answer."""
MOST, PIECE = 100, 8
"""Texts or images that the page asks about, and how many at once."""
DRAWN = 1000
"""Sentences of each split of the demonstration whose antecedents are known, for more texts."""
Counts = Mapping[Kind, HeadCounts]


@dataclass(frozen=True)
class TextCounts:
    """What one text or image adds; ``cut``: whether only a part of it was read."""

    counts: Counts
    cut: bool = False


@dataclass(frozen=True)
class _Counted:
    """What is counted so far, cached."""

    texts: tuple[TextCounts, ...]

    @property
    def size(self) -> int:
        """Bytes, about."""
        return sum(one.sum_LHF.nbytes for text in self.texts for one in text.counts.values())


def count_texts(
    task: Task, texts: Sequence[TextExample], changes: AblationRequest = UNCHANGED, step: int = TEXTS
) -> Iterator[TextCounts]:
    """What the heads attend to in each text, in order, several in a pass.

    Args:
        task: a loaded model of texts that has attention.
        texts: none of them empty; ``step``: how many are read at once, at most ``TEXTS``.
        changes: what the model does without.

    Raises:
        UsageError: a text has a target and the model writes none.
        RegardError: the model has no attention, or computes NaN or infinite values.
    """
    known, step = demo_antecedents(task, [one.source for one in texts]), min(step, TEXTS)
    for begin in range(0, len(texts), step):
        some = texts[begin : begin + step]
        with changes.ablations.apply(task.recipe.model):
            found = record_texts(task, some)
        for text, (record, cut) in zip(some, found, strict=True):
            if not record.kinds:
                raise RegardError("has no attention to look at", "model")
            antecedent = known.get(text.source)
            sides = {
                kind: KindRecord(record, kind, kind == "decoder" and changes.mask, antecedent) for kind in record.kinds
            }
            yield TextCounts({kind: count_heads(side) for kind, side in sides.items()}, cut)


def count_images(
    task: ImageClassification, images: Pixels, changes: AblationRequest = UNCHANGED, step: int = TEXTS
) -> Iterator[TextCounts]:
    """What the heads attend to in each image, in order, several in a pass.

    Args:
        task: a loaded model of images.
        images: count × height × width × channels; ``step``: how many are read at once, at most.
        changes: what the model does without.

    Raises:
        RegardError: the model computes NaN or infinite values.
    """
    from regard.models.captured_attention import image_weights

    cut, (layers, heads) = task.cut, task.recipe.model.attention["encoder"]
    places = PatchPositions(cut.shape.height // cut.patch, cut.shape.width // cut.patch, cut.patch)
    step = max(1, min(step, WEIGHTS // (layers * heads * cut.tokens**2)))
    for begin in range(0, len(images), step):
        with changes.ablations.apply(task.recipe.model):
            found = [image_weights(task.model, batch) for batch in task.batches(images[begin : begin + step])]
        for weights in found:
            for number in range(len(weights[0])):
                weight_LHQK = np.stack([layer[number].double().cpu().numpy() for layer in weights])
                check_finite(weight_LHQK)
                yield TextCounts({"encoder": count_patches(weight_LHQK, places)})


def demo_antecedents(task: Task, sources: Sequence[str]) -> Mapping[str, Antecedent]:
    """The antecedents that the grammar of the demonstration knows, of its first validation and test sentences."""
    if not is_demo_recipe(task.recipe):
        return {}
    return _grammar_antecedents(task.recipe.seed, MOST if len(sources) <= MOST else DRAWN)


@lru_cache(2)
def _grammar_antecedents(seed: int, count: int) -> dict[str, Antecedent]:
    from regard.runs.demo.grammar import classic, generate, word_spans

    pairs = (*classic(), *(pair for split in ("valid", "test") for pair in generate(split, count, seed)))
    found = {}
    for pair in pairs:
        if known := pair.pronoun:
            source, target = word_spans(pair.source), word_spans(pair.target)
            found[pair.source] = Antecedent(
                pair.source,
                pair.target,
                source[known.source_word],
                target[known.target_word],
                tuple(source[word] for word in known.antecedent_words),
                tuple(source[word] for word in known.rival_words),
            )
    return found


def folder_texts(folder: Folder, task: Task) -> tuple[str, list[TextExample]]:
    """The texts to ask a model about, and where they come from: its validation set, or else its examples.

    A translator is made to write the translations of the set.
    """
    recipe = task.recipe
    if is_demo(folder.path, recipe):
        from regard.runs.demo.grammar import generate

        return "demo", [TextExample(pair.source, pair.target) for pair in generate("valid", MOST, recipe.seed)]
    held: Iterable[TextExample] = ()
    if recipe.info.learns_from == "pairs":
        from regard.data.prepare.folder import VALIDATION
        from regard.text.lines import lines

        files = [folder.path / "training" / "data" / name for name in VALIDATION]
        if all(file.is_file() for file in files):
            held = (TextExample(*pair) for pair in zip(*map(lines, files), strict=False))
    elif known := validation_examples(folder.path):
        held = map(TextExample, known.texts)
    if some := list(islice(dict.fromkeys(one for one in held if one.source.strip()), MOST)):
        return "validation", some
    return "examples", [TextExample(text) for text in examples(folder.path, recipe) if text.strip()]


@question
def heads(models: Models, asked: ModelRequest, changes: Changes = UNCHANGED) -> Answer:
    """What each head does over the folder's texts, of as many as there was time for; asked again, of more.

    Of a model of images over those beside the page, or over the demonstration's.
    """
    loaded = models.load_for(asked)
    task, key = loaded.task, (loaded.key, "head counts", changes)
    before: _Counted = models.passes.get(key, lambda: _Counted(()))
    done = len(before.texts)
    if reads_image(task):
        origin, images = models.gallery.origin, models.gallery.batch(task, 0, MOST).pixels
        count, rest = len(images), count_images(task, images[done:], changes, PIECE)
    else:
        origin, texts = models.cut.get((loaded.key, "texts"), lambda: folder_texts(models.folder(asked.model), task))
        count, rest = len(texts), count_texts(task, texts[done:], changes, PIECE)
    metrics = metrics_of(task)
    if not count:
        told = f"there are no {metrics.of} beside this model; regard attend --input FILE --table reads a file"
        raise RegardError(told, "model")
    counted = _Counted((*before.texts, *values_in_time(rest, SECONDS, PIECE, PIECE)))
    models.passes.put(key, counted)
    found = head_statistics([one.counts for one in counted.texts], metrics=metrics)
    values = {
        "origin": origin,
        "of": metrics.of,
        "done": len(counted.texts),
        "total": count,
        "cut": sum(one.cut for one in counted.texts),
        "confidence": CONFIDENCE,
        "excess": EXCESS,
        "kinds": {kind: kind_values(one) for kind, one in found.items()},
    }
    arrays = {}
    for kind, one in found.items():
        shown = [*columns(one).values()]
        for name, array in (("mean", one.mean_LHF), ("low", one.low_LHF), ("high", one.high_LHF)):
            arrays[f"{name}.{kind}"] = array[..., shown].astype(np.float32)
    return values, arrays


def metrics_of(task: Task) -> HeadMetrics:
    """What is counted of the heads of a model."""
    return OF_IMAGES if reads_image(task) else OF_TEXTS


def columns(found: HeadStatistics) -> dict[str, int]:
    """What is shown of a kind of attention, by its place: functions, distances and measures that some text can show."""
    there = zip(found.metrics.names, found.texts_F, strict=True)
    return {name: place for place, (name, texts) in enumerate(there) if texts and name != "rival"}


def kind_values(found: HeadStatistics) -> dict[str, object]:
    """The columns of a kind and the labels of its heads, as plain values."""
    (layers, heads), told = found.mean_LHF.shape[:2], found.metrics
    every: tuple[tuple[str, Callable[[int, int], object]], ...]
    every = ("functions", found.function), ("rare", found.rare_functions), ("labels", found.label)
    return {
        "layers": layers,
        "heads": heads,
        "columns": [
            {
                "name": name,
                "title": told.title(name),
                "note": told.shares[name].note if name in told.shares else "",
                "unit": told.measures.get(name),
                "chance": float(found.chance_F[place]),
                "queries": int(found.queries_F[place]),
                "texts": int(found.texts_F[place]),
            }
            for name, place in columns(found).items()
        ],
        **{name: [[value(layer, head) for head in range(heads)] for layer in range(layers)] for name, value in every},
    }
