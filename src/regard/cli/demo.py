"""``regard demo``: trains and evaluates a model on generated data, and shows its attention."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from regard.cli.io.load_model import check_threads, explore_command, write
from regard.cli.io.terminal import Stop, colour_scheme, result, result_json
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.inspection.pictures.terminal_heatmap import ColourScheme
    from regard.runs.demo.ablation_study import PronounAttention
    from regard.runs.demo.convolution import ReceptiveField
    from regard.runs.demo.translation import Demonstration, DemoScores

Idea = Literal["residual", "norm", "positions", "scale", "mask", "heads", "attention", "feed-forward"]
"""What ``--without`` can take out."""
PRONOUN = "it"
"""The word whose attention is shown."""
WALK = "walk.json"
"""How the pronoun is resolved, for the guided walk of ``regard explore``, in the demonstration's folder."""


def demo(
    *,
    output: Path = Path("demo"),
    seed: int = 1,
    steps: int | None = None,
    without: Idea | None = None,
    images: bool = False,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Learn to translate the built-in corpus, and show how well and why.

    A grammar writes English-German pairs; a small Transformer learns them in a few minutes. Reported are exact match,
    BLEU, the gender of pronouns and where the pronoun looks, beside baselines, and how many simple sentences of a fixed
    list come out; then one sentence's attention is shown, and which heads the pronoun needs, found by switching every
    head off. ``regard explore`` leads through that, by ``walk.json``.

    Args:
        output: the folder to make; the model stays there.
        seed: of every random choice.
        steps: training steps; default: what suffices.
        without: train the same Transformer with this idea of the paper taken out, and show both beside each other:
            residual, norm, positions, scale (by √d_k), mask, heads (one in each layer), attention (the mean instead) or
            feed-forward.
        images: classify images instead: four digits each, two of them equal; shown is how far the heads attend, and how
            far a convolutional network sees.
        threads: processor threads; 1 trains on one core, where two processes have two by default.
        json: print the figures as one JSON object instead.
    """
    if steps is not None and steps < 1:
        raise UsageError(f"{steps} steps teach nothing; give 1 or more", "--steps")
    from regard.runs.demo.translation import demonstrate
    from regard.training.reporters import reporter

    check_threads(threads)
    for path in (output / name for name in (".", "model", *(("images", "cnn") if images else ("corpus",)))):
        if path.exists() and not path.is_dir():
            raise UsageError("is a file, and a folder is made there; choose another --output", str(path))
    if images:
        if without:
            raise UsageError("is for the demonstration of translation", "--without")
        _images(output, seed, steps, threads, json)
        return
    if (walk := output / WALK).is_symlink() or (walk.exists() and not walk.is_file()):
        raise UsageError(
            "is no plain file, and one is written there; move it away, or choose another --output", str(walk)
        )
    if without:
        _without(without, output, seed, steps, threads, json)
        return
    with Stop() as stop, reporter(watch=explore_command(output)) as shown:
        found = demonstrate(output, seed, steps, shown, stop, threads)
    if found.study:
        from regard.inspection.folders.walk import write_walk
        from regard.tasks.model_path import weights_sha256

        write(walk, write_walk(found.study, weights_sha256(output / "model")))
    if json:
        result_json(found.to_dict())
    else:
        result(table(found))
        result(picture(output, found, colour_scheme()))
        if found.study:
            from regard.runs.demo.ablation_study import study_lines

            title = f"How it finds what “{PRONOUN}” stands for, by switching heads off:"
            result("\n".join([title, *study_lines(found.study)]) + "\n")
        begins = "See it step by step, and try" if found.study else "Look into it with"
        result(f"{begins} sentences of your own, on a page in the browser: {explore_command(output)}\n")


def _without(idea: Idea, output: Path, seed: int, steps: int | None, threads: int | None, json: bool) -> None:
    """The demonstration's model beside one without an idea."""
    from regard.runs.demo.without import demonstrate_without, lines
    from regard.training.reporters import reporter

    with Stop() as stop, reporter(watch=explore_command(output)) as shown:
        found = demonstrate_without(idea, output, seed, steps, shown, stop, threads)
    if json:
        result_json(found.to_dict())
    else:
        result("\n".join(lines(found)) + "\n")
        result(f"See both on a page in the browser: {explore_command(output)}\n")


def _images(output: Path, seed: int, steps: int | None, threads: int | None, json: bool) -> None:
    """The image demonstration."""
    from dataclasses import asdict

    from regard.inspection.pictures.images import FIRST, distances
    from regard.runs.demo.images import demonstrate_images, make_images
    from regard.training.reporters import reporter

    with Stop() as stop, reporter(watch=explore_command(output)) as shown:
        found, model = demonstrate_images(output, seed, steps, shown, stop, threads)
    far = distances(model, list(make_images(seed)["test"][0][:FIRST]))
    if json:
        result_json({**asdict(found), "distances": far.values()})
    else:
        lines = [
            f"{found.test:,} test images, {found.train:,} to learn from: four digits each; which one is there twice?",
            "",
            f"{'this model':<42} {found.model:>7.1f} %",
            f"{'a convolutional network (CNN)':<42} {found.convolutional:>7.1f} %",
            f"{'the training image with the nearest pixels':<42} {found.nearest:>7.1f} %",
            f"{'looking at one digit only, at best':<42} {found.one_digit:>7.1f} %",
            f"{'guessing':<42} {found.chance:>7.1f} %",
        ]
        result("\n".join(lines) + "\n")
        result(f"{far.terminal()}\n")
        result(f"{_receptive_fields(found.receptive_fields)}\n")
        result(f"Look into it on a page in the browser: {explore_command(output)}\n")


def _receptive_fields(layers: Sequence[ReceptiveField]) -> str:
    """How far each layer of the convolutional network sees."""
    lines = [
        "The CNN, from a position of each layer: mean distance in pixels to the pixels that its output depends on,",
        "weighted by how much, and the side of the square in which all of these lie.",
        "",
        f"{'layer':<6}{'distance':>10}{'receptive field':>18}",
        *(f"{layer:<6}{one.distance:>10.1f}{one.side:>18}" for layer, one in enumerate(layers, 1)),
    ]
    return "\n".join(lines) + "\n"


def table(found: Demonstration) -> str:
    """The scores next to the baselines, and the pronoun's attention next to that of nouns."""
    from regard.runs.demo.grammar.corpus import PATTERNS
    from regard.runs.demo.grammar.lexicon import ADJECTIVES, NOUNS, VERBS

    majority = _of(found.majority.correct, found.majority.total)
    lines = [
        f"{found.test:,} test sentences, {found.train:,} to learn from; what is tested was never seen together.",
        f"The grammar knows {len(NOUNS)} nouns, {len(VERBS)} verbs, {len(ADJECTIVES)} adjectives "
        f"and {len(PATTERNS)} sentence forms.",
        "The models translate greedily: the most probable token at each step.",
        "",
        f"{'':<32} {'exact':>8} {'BLEU':>7} {'pronoun gender':>26}",
        _row("this model", found.model),
        _row("the nearest training sentence", found.nearest),
        f"{'the commonest pronoun (training)':<32} {'':>8} {'':>7} {majority:>26}",
    ]
    right, seen = found.simple, found.simple_seen
    of_seen = f"of the {seen.total} in the training corpus, {seen.correct}"
    lines += ["", f"Simple sentences that people type first: {_of(right.correct, right.total)} exact; {of_seen}."]
    told = f"Where “{PRONOUN}” looks if the two nouns differ in gender, in the head chosen on validation,"
    lines += ["", told, "and how much nouns look at other nouns there:"]
    lines.append(_gaze_row("“it”, encoder self-attention", found.encoder))
    lines.append(_gaze_row("the German pronoun, encoder-decoder attention", found.cross))
    return "\n".join(lines) + "\n"


def _row(name: str, quality: DemoScores) -> str:
    pronoun = _of(quality.pronoun.correct, quality.pronoun.total)
    return f"{name:<32} {quality.exact:>8.1%} {quality.bleu:>7.1f} {pronoun:>26}"


def _of(correct: int, total: int) -> str:
    return f"{correct / total:.1%} ({correct:,} of {total:,})" if total else "none tested"


def _gaze_row(name: str, looked: PronounAttention) -> str:
    from regard.runs.demo.ablation_study import where

    place = f"layer {looked.layer} head {looked.head}"
    return f"  {name:<46} {place:<16} {where(looked.test)}; nouns: {looked.test.chance:.0%}"


def picture(output: Path, found: Demonstration, look: ColourScheme) -> str:
    """One sentence's attention in the head that finds the antecedent of the English or German pronoun."""
    from regard.inspection.forward.record import Kind, record
    from regard.inspection.pictures.view import View
    from regard.tasks.model_folder import load

    made = record(load(output / "model"), found.example)
    places: dict[Kind, PronounAttention] = {"encoder": found.encoder, "cross": found.cross}
    kind, place = max(places.items(), key=lambda entry: entry[1].valid.margin)
    view = View(made, kind, place.layer, place.head, whole=True)
    pictures = [f"{made.source_text}\n→ {made.target_text}\n", view.terminal(look)]
    if (word := pronoun_of(view.labels()[0])) is not None:
        pictures.append(view.terminal(look, word))
    return "\n".join(pictures)


def pronoun_of(words: list[str]) -> str | None:
    """The pronoun among the words of either language: *it*, or the word after the last *weil*."""
    if PRONOUN in words:
        return PRONOUN
    behind = [word for before, word in pairwise(words) if before == "weil"]
    return behind[-1] if behind else None
