"""``regard attend``: attention between the words of a text or the patches of an image, in the terminal or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Group, Parameter

from regard.cli.io.input_texts import STDIN, InputTexts
from regard.cli.io.load_model import (
    check_threads,
    open_model,
    refuse_given,
    refuse_no_file,
    refuse_other_tasks,
    refuse_unwritable,
    write,
)
from regard.cli.io.terminal import colour_scheme, progress, result, result_json, say, say_invalid_lines
from regard.system.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.inspection.forward.record import Kind
    from regard.inspection.forward.text_windows import WindowedRequest
    from regard.inspection.pictures.terminal_heatmap import ColourScheme
    from regard.tasks.images.classifier import ImageClassification
    from regard.tasks.protocols import Task

OF_TEXTS = Group("Of texts", sort_key=1)
OF_IMAGES = Group("Of images", sort_key=2)
NOT_OF_TEXTS = "is not for this model, which reads images"
NOT_OF_IMAGES = "is not for this model, which reads texts"
PAIRS = (".tsv", ".tab", ".jsonl", ".ndjson", ".json")
"""Endings of files that hold texts and what is written to them."""
MOST = 10_000
"""Most texts or images that a table reads: its intervals hardly change with more."""
One = TypeVar("One")


@Parameter(name="*")
@dataclass(frozen=True)
class AttendOptions:
    """The options of ``regard attend``.

    Args:
        kind: encoder self-attention, decoder self-attention, cross (from what is written to what is read), or pool (the
            words that a recurrent classifier makes its text of); default: the first of these that the model has.
        layer: which layer; default: the last, or where no head is named all.
        head: which head.
        token: show where this word looks (its last occurrence; es/sie: whichever is there), in one head or the mean of
            all; a word of what is written where the kind is decoder or cross. Of images a patch as row,column from 1,1
            on, class (the class token) or mean (of all patches).
        svg: write the picture to this file.
        html: write a page to this file: all heads, to be looked through in any browser; it needs no network.
        json: print one JSON object a sentence or image, with weights.
        device: cpu, cuda ...
        threads: processor threads.
        from_: of a translator of several languages, the language of the text, as regard translate has it.
        to: the language that it is translated into, likewise.
        beside: a second sentence to show below the first, for --token, or where one learned query looks.
        words: whole words instead of the vocabulary's pieces.
        target: the translation to look at, or another text to be written; default: what the model writes itself,
            greedily.
        window: which part of a text that is longer than the model reads, from 1; default: the first; of a text with
            gaps the first that has one, of a language model's text the last.
        image: which image of the file, counted from 1; default: the first.
        input: a file for --table instead of a text: a text a line, plain or gz, xz, zst; of a translator also pairs:
            .tsv, .jsonl; -: stdin; of a model of images CSV, TSV or .npz.
        table: what each head does over all texts or images of --input: the share of its attention on the previous
            token, the same word, punctuation and so on, and the 95 % interval of what it does most (--json: of all);
            of images on the same patch, its neighbours, row and column, and the class token.
    """

    kind: Literal["encoder", "decoder", "cross", "pool"] | None = None
    layer: int | None = None
    head: int | None = None
    token: str | None = None
    svg: Path | None = None
    html: Path | None = None
    json: bool = False
    device: str | None = None
    threads: int | None = None
    from_: Annotated[str | None, Parameter(name="--from", group=OF_TEXTS)] = None
    to: Annotated[str | None, Parameter(group=OF_TEXTS)] = None
    beside: Annotated[str | None, Parameter(group=OF_TEXTS)] = None
    words: Annotated[bool, Parameter(group=OF_TEXTS)] = False
    target: Annotated[str | None, Parameter(group=OF_TEXTS)] = None
    window: Annotated[int | None, Parameter(group=OF_TEXTS)] = None
    image: Annotated[int | None, Parameter(group=OF_IMAGES)] = None
    input: Path | None = None
    table: bool = False

    @property
    def image_number(self) -> int:
        """The number of the image in the file, from 1."""
        if self.image is not None and self.image < 1:
            raise UsageError(f"there is no image {self.image}; they count from 1", "--image")
        return self.image or 1


NO_OPTIONS = AttendOptions()


def attend(
    folder: Annotated[Path, Parameter(name="DIR")],
    text: Annotated[str | None, Parameter(name="TEXT|IMAGES")] = None,
    /,
    *,
    options: AttendOptions = NO_OPTIONS,
) -> None:
    """Show where each word of a sentence looks: one head, one word, or all heads at a glance; or where in an image.

    Rows are queries (who looks), columns are keys (what is looked at); every row sums to one. With no head named all
    heads are shown small. Layers and heads count from 1.

    A model of images is shown one image of a file, and its patches as they lie: where its class token looks, or another
    patch; then how far each head attends, over the first 128 images of the file, beside what convolutions of as many
    layers would see.

    With --input FILE --table: what each head does over many texts or images, named where that is far above chance; with
    --json one object a head. A translator is made to write the translations of a file of pairs; else its own are looked
    at.

    Args:
        folder: the model folder.
        text: the sentence; of a model of images a file of images: CSV, TSV or .npz, labelled or not.
    """
    if options.table or options.input is not None:
        _table(folder, text, options)
        return
    if text is None:
        raise UsageError("give a text between quotes, or --input FILE --table", "TEXT")
    for option, file in (("--svg", options.svg), ("--html", options.html)):
        if file is not None:
            refuse_unwritable(file, option)
    if options.html is not None:
        page = "does not go with --html: the page shows all heads, and all that can be chosen"
        refuse_given(options, page, "kind", "layer", "head", "token", "beside", "words", "svg", "json", "device")
        write(options.html, _page(folder, text, options).encode())
        say(f"wrote {options.html}")
        return
    from regard.tasks.kinds import reads_image

    task = _open(folder, options)
    shown = _image(task, text, options) if reads_image(task) else _texts(task, text, options)
    if options.json:
        for values in shown.values():
            result_json(values)
    if options.svg is not None:
        write(options.svg, shown.svg().encode())
        say(f"wrote {options.svg}")
    elif not options.json:
        result(shown.terminal(colour_scheme()))


def _open(folder: Path, options: AttendOptions) -> Task:
    """The model, a translator between the languages that are asked for."""
    from regard.tasks.kinds import translates

    task = open_model(folder, options.device, options.threads, "attend")
    if translates(task):
        return task.between(options.from_, options.to)
    refuse_given(options, "is for translators", "from_", "to")
    return task


def _table(folder: Path, text: str | None, options: AttendOptions) -> None:
    """What each head does over the texts or images of a file, in the terminal or as JSON lines."""
    if not options.table:
        raise UsageError("goes with --table, which says what each head does over many texts or images", "--input")
    if options.input is None or text is not None:
        raise UsageError("goes with --input FILE instead of a text", "--table")
    others = ("kind", "layer", "head", "token", "beside", "words", "target", "window", "image", "svg", "html")
    refuse_given(options, "does not go with --table, which has all heads and texts", *others)
    file, given = options.input, InputTexts((), options.input)
    from regard.library.heads import head_table
    from regard.tasks.images.classifier import some_images
    from regard.tasks.kinds import reads_image

    task = _open(folder, options)
    sources: Sequence[object]
    targets: list[str] | None = None
    if reads_image(task):
        if file == STDIN:
            raise UsageError("images are read from a file: CSV, TSV or .npz", "--input")
        sources = [pixels for pixels, _ in _first(some_images(task, file, MOST + 1), str(file), "images")]
    else:
        sources, targets = _texts_of(task, file, given)
    with progress(0, 0.0) as shown:
        found = head_table(task, sources, targets, done=lambda: shown.add(1, (shown.done + 1) / len(sources)))
    if options.json:
        for head in found:
            result_json(head.to_dict())
    else:
        result(found.table())


def _texts_of(task: Task, file: Path, given: InputTexts) -> tuple[list[str], list[str] | None]:
    """The texts of a file that are not empty, and what is written to them where it holds that."""
    from regard.data.corpora.corpus import plain_name

    targets = None
    if file != STDIN and plain_name(file).endswith(PAIRS):
        if task.info.writes != "text":
            raise UsageError("holds pairs, but this model writes no text; give a text a line", str(file))
        from regard.data.corpora.pairs import open_pairs

        corpus = open_pairs(file)
        try:
            pairs = _first(corpus.examples(), given.name)
        except RegardError as error:  # this command has no --columns
            message = error.message.partition(": name two by")[0].partition("; say which")[0]
            raise RegardError(f"{message}; pairs are the keys source and target, or two columns", error.where) from None
        for notes in corpus.notes:
            say_invalid_lines(str(file), notes)
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    else:
        sources = _first(given.lines(), given.name)
        given.tell_invalid()
    kept = [place for place, text in enumerate(sources) if text.strip() and (not targets or targets[place].strip())]
    if not kept:
        raise RegardError("there is no text", given.name)
    if len(kept) < len(sources):
        say(f"{given.name}: {len(sources) - len(kept):,} empty lines are left out")
    return [sources[place] for place in kept], targets and [targets[place] for place in kept]


def _first(values: Iterable[One], name: str, of: str = "texts") -> list[One]:
    found = list(islice(values, MOST + 1))
    if len(found) > MOST:
        say(f"{name}: the first {MOST:,} {of} are read")
    return found[:MOST]


@dataclass(frozen=True)
class AttentionView:
    """The attention to show, in each output format."""

    values: Callable[[], list[dict[str, object]]]
    terminal: Callable[[ColourScheme], str]
    svg: Callable[[], str]


def _texts(task: Task, text: str, options: AttendOptions) -> AttentionView:
    """One text, or two below each other, each with its given target and the window to show."""
    from regard.inspection.forward.record import KINDS, WHOLE, record
    from regard.inspection.forward.text_windows import WindowedRequest
    from regard.inspection.pictures.view import View, word_svg

    refuse_given(options, NOT_OF_IMAGES, "image")
    token, layer, beside = options.token, options.layer, options.beside
    given = [(text, options.target, options.window), *([(beside, None, None)] if beside else [])]
    cut = [WindowedRequest.of(task, *one) for one in given]
    remark = _windows_note(cut, options.window)
    made = [record(task, one.asked.text, one.asked.target) for one in cut]
    there: list[Kind] = [one for one in KINDS if one in made[0].weights]
    use = options.kind or there[0]
    if len(given) > 1 and token is None and use != "pool":
        raise UsageError("a second sentence goes with one word: add --token WORD", "--beside")
    made[0].layer(use, 1)  # a kind that the model lacks is refused
    if layer is None and (options.head is not None or token is not None):
        layer = len(made[0].weights[use])
    views = [View(one, use, layer, options.head, options.words or token is not None) for one in made]
    return AttentionView(
        lambda: [{**view.values(), **one.cut_values} for view, one in zip(views, cut, strict=True)],
        lambda look: "\n".join(view.terminal(look, token) for view in views),
        lambda: word_svg(views, token or WHOLE, remark) if token or len(views) > 1 else views[0].svg(remark=remark),
    )


def _windows_note(cut: list[WindowedRequest], window: int | None) -> str:
    """Which windows of over-long texts are shown; also printed to stderr.

    Raises:
        UsageError: there is no such part.
    """
    count = 1 if cut[0].source is None else cut[0].source.count
    if window is not None and not 1 <= window <= count:
        raise UsageError(f"there is no part {window}; the text has {count}, counted from 1", "--window")
    told = " ".join(one.label for one in cut if one.label)
    if told:
        say(f"{told} --window shows another.")
    return told


def _image(task: ImageClassification, path: str, options: AttendOptions) -> AttentionView:
    """One image of a file, and the mean attention distance over its first images."""
    from regard.inspection.pictures.images import FIRST, distances, image_view
    from regard.tasks.images.classifier import some_images

    if options.kind != "encoder":
        refuse_given(options, NOT_OF_TEXTS, "kind")
    refuse_given(options, NOT_OF_TEXTS, "beside", "words", "target", "window")
    refuse_no_file(Path(path))
    number, layer, head = options.image_number, options.layer, options.head
    found = some_images(task, Path(path), max(number, FIRST))
    _refuse_no_image(number, len(found), path)
    pixels, label = found[number - 1]
    if layer is None and head is not None:
        layer = len(task.model.encoder.layers)
    view = image_view(task, pixels, number, label, options.token, layer=layer, head=head)
    far = distances(task, [one for one, _ in found[:FIRST]])
    return AttentionView(
        lambda: [{**view.values(), "distances": far.values()}],
        lambda look: f"{view.terminal(look)}\n{far.terminal()}",
        view.svg,
    )


def _page(folder: Path, text: str, options: AttendOptions) -> str:
    """The self-contained HTML page of one pass."""
    from regard.inspection.folders.models import Gallery, Models
    from regard.inspection.forward.text_windows import WindowedRequest
    from regard.inspection.questions.answers import export_file
    from regard.tasks.kinds import reads_image
    from regard.tasks.model_folder import load_recipe_and_assets

    check_threads(options.threads)
    info = load_recipe_and_assets(folder)[0].info
    refuse_other_tasks(folder, info, "attend")
    models = Models([folder], None, options.threads or 1)
    asked: dict[str, object] = {"model": 0, "form": "html"}
    if info.reads == "image":
        refuse_given(options, NOT_OF_TEXTS, "target", "window")
        refuse_no_file(Path(text))
        number = options.image_number
        models.gallery = Gallery(Path(text), number)
        task = models.load(0).task
        assert reads_image(task)
        _refuse_no_image(number, models.gallery.batch(task, 0, number).total, text)
        asked["image"] = {"number": number - 1}
    else:
        refuse_given(options, NOT_OF_IMAGES, "image")
        request = WindowedRequest.of(models.load(0).task, text, options.target, options.window)
        _windows_note([request], options.window)
        asked |= {"text": text, "target": options.target, "window": options.window}
        asked["between"] = [options.from_, options.to]
    return export_file(models, asked)[0].decode()


def _refuse_no_image(number: int, count: int, path: str) -> None:
    if count < number:
        raise UsageError(f"there is no image {number}; {path} has {count:,}", "--image")
