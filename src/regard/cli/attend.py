"""``regard attend``: attention between the words of a text or the patches of an image, in the terminal or a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from regard.cli.io.load_model import (
    IMAGES,
    check_threads,
    open_model,
    refuse_no_file,
    refuse_other_tasks,
    refuse_unwritable,
    write,
)
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.explore.forward.text_windows import WindowedRequest
    from regard.explore.kinds import Kind
    from regard.explore.pictures.heatmap import ColourScheme

OF_TEXTS = Group("Of texts", sort_key=1)
OF_IMAGES = Group("Of images", sort_key=2)


def attend(
    folder: Annotated[Path, Parameter(name="DIR")],
    text: Annotated[str, Parameter(name="TEXT|IMAGES")],
    /,
    *,
    kind: Literal["encoder", "decoder", "cross", "pool"] | None = None,
    layer: int | None = None,
    head: int | None = None,
    token: str | None = None,
    svg: Path | None = None,
    html: Path | None = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
    beside: Annotated[str | None, Parameter(group=OF_TEXTS)] = None,
    words: Annotated[bool, Parameter(group=OF_TEXTS)] = False,
    target: Annotated[str | None, Parameter(group=OF_TEXTS)] = None,
    window: Annotated[int | None, Parameter(group=OF_TEXTS)] = None,
    image: Annotated[int | None, Parameter(group=OF_IMAGES)] = None,
) -> int:
    """Show where each word of a sentence looks: one head, one word, or all heads at a glance; or where in an image.

    Rows are queries (who looks), columns are keys (what is looked at); every row sums to one. With no head named all
    heads are shown small. Layers and heads count from 1.

    A span-corruption model (T5) is shown a text with gaps: "The [MASK] sleeps." A model of images is shown one image
    of a file, and its patches as they lie: where its class token looks, or another patch; then how far each head
    attends, over the first 128 images of the file, beside what convolutions of as many layers would see.

    Args:
        folder: the model folder.
        text: the sentence; of a model of images a file of images: CSV, TSV or .npz, labelled or not.
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
        beside: a second sentence to show below the first, for --token, or where one learned query looks.
        words: whole words instead of the vocabulary's pieces.
        target: the translation to look at, or what is missing: "[MASK] cat"; default: what the model writes itself,
            greedily.
        window: which part of a text that is longer than the model reads, from 1; default: the first; of a text with
            gaps the first that has one, of a language model's text the last.
        image: which image of the file, counted from 1; default: the first.
    """
    for option, file in (("--svg", svg), ("--html", html)):
        if file is not None:
            refuse_unwritable(file, option)
    from regard.cli.io.terminal import colour_scheme, result, result_json, say

    if html is not None:
        beyond: dict[str, object] = {
            "--kind": kind,
            "--layer": layer,
            "--head": head,
            "--token": token,
            "--beside": beside,
        }
        beyond |= {"--words": words or None, "--svg": svg, "--json": json or None, "--device": device}
        _refuse(beyond, "does not go with --html: the page shows all heads, and all that can be chosen")
        write(html, _page(folder, text, target, window, image, threads).encode())
        say(f"wrote {html}")
        return 0
    task = open_model(folder, device, threads, "attend")
    if task.name == IMAGES:
        elsewhere = None if kind in (None, "encoder") else kind
        given: dict[str, object] = {"--kind": elsewhere, "--beside": beside, "--words": words or None}
        given |= {"--target": target, "--window": window}
        _refuse(given, "is not for this model, which reads images")
        shown = _image(task, Path(text), image, token, layer, head)
    else:
        _refuse({"--image": image}, "is not for this model, which reads texts")
        pairs = [(text, target, window), *([(beside, None, None)] if beside else [])]
        shown = _texts(task, pairs, kind, layer, head, words, token)
    if json:
        for values in shown.values():
            result_json(values)
    if svg is not None:
        write(svg, shown.svg().encode())
        say(f"wrote {svg}")
    elif not json:
        result(shown.terminal(colour_scheme()))
    return 0


@dataclass(frozen=True)
class AttentionView:
    """The attention to show, in each output format."""

    values: Callable[[], list[dict[str, Any]]]
    terminal: Callable[[ColourScheme], str]
    svg: Callable[[], str]


def _texts(
    task: Any,
    given: list[tuple[str, str | None, int | None]],
    kind: Kind | None,
    layer: int | None,
    head: int | None,
    words: bool,
    token: str | None,
) -> AttentionView:
    """One text, or two below each other, each with its given target and the window to show."""
    from regard.explore.forward.record import WHOLE, record
    from regard.explore.forward.text_windows import WindowedRequest
    from regard.explore.kinds import KINDS
    from regard.explore.pictures.view import View, word_svg

    cut = [WindowedRequest.of(task, *one) for one in given]
    remark = _windows_note(cut, given[0][2])
    made = [record(task, one.asked.text, one.asked.target) for one in cut]
    there: list[Kind] = [one for one in KINDS if one in made[0].weights]
    use = there[0] if kind is None else kind
    if len(given) > 1 and token is None and use != "pool":
        raise UsageError("a second sentence goes with one word: add --token WORD", "--beside")
    made[0].layer(use, 1)  # a kind that the model lacks is refused
    if layer is None and (head is not None or token is not None):
        layer = len(made[0].weights[use])
    views = [View(one, use, layer, head, words or token is not None) for one in made]
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
    from regard.cli.io.terminal import say

    count = 1 if cut[0].source is None else cut[0].source.count
    if window is not None and not 1 <= window <= count:
        raise UsageError(f"there is no part {window}; the text has {count}, counted from 1", "--window")
    told = " ".join(one.label for one in cut if one.label)
    if told:
        say(f"{told} --window shows another.")
    return told


def _image(
    task: Any, path: Path, number: int | None, who: str | None, layer: int | None, head: int | None
) -> AttentionView:
    """One image of a file, and the mean attention distance over its first images."""
    from regard.explore.pictures.images import FIRST, distances, image_view
    from regard.tasks.images.classifier import some_images

    refuse_no_file(path)
    number = _image_number(number)
    found = some_images(task, path, max(number, FIRST))
    _refuse_no_image(number, len(found), path)
    pixels, label = found[number - 1]
    if layer is None and head is not None:
        layer = task.recipe.model.layers
    view = image_view(task, pixels, number, label, who, layer=layer, head=head)
    far = distances(task, [one for one, _ in found[:FIRST]])
    return AttentionView(
        lambda: [{**view.values(), "distances": far.values()}],
        lambda look: f"{view.terminal(look)}\n{far.terminal()}",
        lambda: view.svg(far),
    )


def _page(
    folder: Path, text: str, target: str | None, window: int | None, image: int | None, threads: int | None
) -> str:
    """The self-contained HTML page of one pass."""
    from regard.explore.folders.models import Gallery, Models
    from regard.explore.forward.text_windows import WindowedRequest
    from regard.explore.questions.answers import export_file
    from regard.tasks import model_folder

    check_threads(threads)
    task = model_folder.load_recipe_and_assets(folder)[0].task
    refuse_other_tasks(folder, task, "attend")
    models, asked = Models([folder], None, threads or 1), dict[str, Any]({"model": 0, "form": "html"})
    if task == IMAGES:
        _refuse({"--target": target, "--window": window}, "is not for this model, which reads images")
        refuse_no_file(Path(text))
        number = _image_number(image)
        models.gallery = Gallery(Path(text), number)
        _refuse_no_image(number, models.gallery.batch(models.load(0).task, 0, number).total, Path(text))
        asked["image"] = {"number": number - 1}
    else:
        _refuse({"--image": image}, "is not for this model, which reads texts")
        _windows_note([WindowedRequest.of(models.load(0).task, text, target, window)], window)
        asked |= {"text": text, "target": target, "window": window}
    return export_file(models, asked)[0].decode()


def _image_number(number: int | None) -> int:
    """The number of the image in the file, from 1."""
    if number is not None and number < 1:
        raise UsageError(f"there is no image {number}; they count from 1", "--image")
    return 1 if number is None else number


def _refuse_no_image(number: int, count: int, path: Path) -> None:
    if count < number:
        raise UsageError(f"there is no image {number}; {path} has {count:,}", "--image")


def _refuse(options: Mapping[str, object], what: str) -> None:
    """Raise a UsageError for the first of these options that was given."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(what, name)
