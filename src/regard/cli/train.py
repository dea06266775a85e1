"""``regard train``: trains a model from files of texts, sentence pairs or labelled examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from regard.cli.io.load_model import check_threads
from regard.system.errors import UsageError

DATA = Group("Data", sort_key=1)
RECIPE = Group("Recipe", sort_key=2)
RUN = Group("Run", sort_key=3)


def train(
    *,
    output: Annotated[Path | None, Parameter(group=RUN)] = None,
    task: Annotated[str | None, Parameter(group=RECIPE)] = None,
    train: Annotated[list[Path] | None, Parameter(group=DATA)] = None,
    valid: Annotated[Path | None, Parameter(group=DATA)] = None,
    start_from: Annotated[Path | None, Parameter(name="--from", group=DATA)] = None,
    source: Annotated[list[Path] | None, Parameter(group=DATA)] = None,
    target: Annotated[list[Path] | None, Parameter(group=DATA)] = None,
    pairs: Annotated[list[Path] | None, Parameter(group=DATA)] = None,
    columns: Annotated[str | None, Parameter(group=DATA)] = None,
    weight: Annotated[list[float] | None, Parameter(group=DATA)] = None,
    valid_source: Annotated[Path | None, Parameter(group=DATA)] = None,
    valid_target: Annotated[Path | None, Parameter(group=DATA)] = None,
    source_language: Annotated[str | None, Parameter(group=DATA)] = None,
    target_language: Annotated[str | None, Parameter(group=DATA)] = None,
    recipe: Annotated[Path | None, Parameter(group=RECIPE)] = None,
    preset: Annotated[str | None, Parameter(group=RECIPE)] = None,
    set: Annotated[list[str] | None, Parameter(group=RECIPE)] = None,
    minutes: Annotated[float | None, Parameter(group=RECIPE)] = None,
    steps: Annotated[int | None, Parameter(group=RECIPE)] = None,
    seed: Annotated[int | None, Parameter(group=RECIPE)] = None,
    resume: Annotated[Literal["auto", "must", "never"], Parameter(group=RUN)] = "auto",
    allow_mismatch: Annotated[list[str] | None, Parameter(group=RUN)] = None,
    despite_check: Annotated[bool, Parameter(group=RUN, negative="")] = False,
    threads: Annotated[int | None, Parameter(group=RUN)] = None,
    device: Annotated[str | None, Parameter(group=RUN)] = None,
    tensorboard: Annotated[bool, Parameter(group=RUN, negative="")] = False,
) -> int:
    """Train a translator from two files of sentences, or a model of another task from one file.

    A translator's files are line by line each other's translation. Everything else has a default that suits the size
    of the data. The run can be stopped (Ctrl-C) or killed at any time; the same command resumes it.

    Args:
        output: the model folder to make, or to resume; always needed.
        task: translation (the default), classification, tagging, language-model, masked-lm, span-corruption or
            image-classification.
        train: what another task than translation learns from; may be given several times, plain or gz, xz, zst.
        valid: what it is validated on; default: some split off from the data.
        start_from: a model folder to initialise from: its weights, sizes and vocabulary; not for translation, which
            starts from scratch.
        source: sentences to translate from; may be given several times, plain or gz, xz, zst.
        target: their translations, as many files and lines.
        pairs: a TSV or JSONL file that holds both sides; may be given several times.
        columns: where in it: two columns "1,2" of a TSV, two keys "en,de" of a JSONL; of --train the columns of text
            and label, by number or name, or "label text" where a line begins with its label; of running text the key
            in a JSONL.
        weight: of translation only: how often to draw from each corpus beside the others, one number for each;
            default: by size.
        valid_source: sentences to validate on; default: some split off from the data.
        valid_target: their translations.
        source_language: code of the source language; default: the recipe's, else from the file's extension.
        target_language: code of the target language; default: the recipe's, else from the file's extension.
        recipe: a TOML file that decides everything about model and training.
        preset: a named size that the task has, e.g. tiny, small, base; bert-tiny; gpt-tiny (regard info gpt-tiny shows
            it); an unknown one is answered with all; not beside --from.
        set: one value of the recipe, e.g. model.d_model=512; may be given several times.
        minutes: finish after about this many minutes, final scores included; the schedule ends with the last step that
            fits.
        steps: train for this number of updates, instead of minutes.
        seed: of every random choice.
        resume: resume the run in the folder if there is one (auto), require one (must), or start over (never).
        allow_mismatch: resume although this field differs from the run's, e.g. training.steps of a finished run.
        despite_check: train although the check of the data judges that it would spoil the model.
        threads: processor threads.
        device: cpu, cuda, cuda:1 ...; default: the best there is.
        tensorboard: write TensorBoard files too, below training/tensorboard.
    """
    if output is None:
        raise UsageError("say where the model goes: --output DIR")
    if task in (None, "translation") and not train:
        _require_data(source, target, pairs)
    if (valid_source is None) != (valid_target is None):
        raise UsageError("give both --valid-source FILE and --valid-target FILE, or neither")
    check_threads(threads)
    from regard.cli.io.signals import Stop
    from regard.cli.io.terminal import result
    from regard.runs.train import train as trained
    from regard.training.reporters import reporter

    with Stop() as stop, reporter() as shown:
        made = trained(
            source=source or None,
            target=target or None,
            output=output,
            task=task,
            train=train or None,
            valid=valid,
            start_from=start_from,
            valid_source=valid_source,
            valid_target=valid_target,
            recipe=recipe,
            settings=tuple(set or ()),
            minutes=minutes,
            steps=steps,
            seed=seed,
            preset=preset,
            resume=resume,
            allow_mismatch=tuple(allow_mismatch or ()),
            despite_check=despite_check,
            threads=threads,
            device=device,
            tensorboard=tensorboard,
            pairs=pairs or None,
            columns=columns,
            weights=tuple(weight or ()),
            source_language=source_language,
            target_language=target_language,
            reporter=shown,
            should_stop=stop,
        )
    result(f"The model is in {output}. {USES[made.name].format(output)}\n")
    return 0


USES = {
    "translation": "To translate with it:\n\n  regard translate {} < in.txt > out.txt",
    "classification": "To classify with it:\n\n  regard classify {} < texts.txt > labels.tsv",
    "tagging": "To tag with it:\n\n  regard tag {} < texts.txt > tagged.conll",
    "language-model": "To write with it:\n\n  regard generate {}",
    "masked-lm": 'To fill gaps with it:\n\n  echo "The [MASK] sleeps." | regard fill {}',
    "span-corruption": 'To fill gaps with it:\n\n  echo "The [MASK] sleeps." | regard fill {}',
    "image-classification": "To classify with it:\n\n  regard classify {} < images.csv > labels.tsv",
}
"""The commands to use next, by task."""


def _require_data(source: list[Path] | None, target: list[Path] | None, pairs: list[Path] | None) -> None:
    """Raise a UsageError that names the missing option."""
    if not (source or target or pairs):
        raise UsageError("nothing to learn from: give --source FILE --target FILE, or --pairs FILE")
    if len(source or ()) != len(target or ()):
        raise UsageError(f"{len(source or ())} --source but {len(target or ())} --target; they go in pairs")
