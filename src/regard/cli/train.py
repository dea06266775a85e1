"""``regard train``: trains a model from files of texts, sentence pairs or labelled examples."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from regard.cli.io.load_model import check_threads, example, explore_command
from regard.cli.io.terminal import Stop, result
from regard.system.errors import UsageError

DATA = Group("Data", sort_key=1)
RECIPE = Group("Recipe", sort_key=2)
RUN = Group("Run", sort_key=3)


@Parameter(name="*")
@dataclass(frozen=True)
class TrainOptions:
    """The options of ``regard train``, by the names of :func:`regard.runs.train.train`.

    Args:
        output: the model folder to make, or to resume; always needed.
        task: translation (the default), text-to-text, classification, sentence-pairs, tagging, language-model,
            masked-lm or image-classification.
        train: what another task than translation learns from; may be given several times, plain or gz, xz, zst.
        valid: what it is validated on; default: some split off from the data.
        start_from: a model folder to initialise from: its weights, sizes and vocabulary; not for translation, which
            starts from scratch.
        source: sentences to translate from; may be given several times, plain or gz, xz, zst.
        target: their translations, as many files and lines.
        pairs: a TSV or JSONL file that holds both sides; may be given several times.
        columns: where in it: two columns "1,2" of a TSV, two keys "en,de" of a JSONL; of --train the columns of text
            and label, by number or name, or "label text" where a line begins with its label; of text to text those of
            source and target, or prefix, source and target; of running text the key in a JSONL.
        weights: of translation only: how often to draw from each corpus beside the others, one number for each;
            default: by size.
        valid_source: sentences to validate on; default: some split off from the data.
        valid_target: their translations.
        source_language: code of the source language; default: the recipe's, else from the file's extension.
        target_language: code of the target language; default: the recipe's, else from the file's extension.
        recipe: a TOML file that decides everything about model and training.
        preset: a named size that the task has, e.g. tiny, small, base; bert-tiny; gpt-tiny (regard info gpt-tiny shows
            it); an unknown one is answered with all; not beside --from.
        settings: one value of the recipe, e.g. model.d_model=512; may be given several times.
        minutes: finish about this many minutes after the first step, final scores included; the schedule ends with the
            last step that fits.
        steps: train for this number of updates, instead of minutes.
        seed: of every random choice.
        resume: resume the run in the folder if there is one (auto), require one (must), or start over (never).
        allow_mismatch: resume although this field differs from the run's, e.g. training.steps of a finished run.
        despite_check: train although the check of the data judges that it would spoil the model.
        threads: processor threads of one process; 1 leaves the other cores free. Default: processes of one thread, or,
            of steps that are not divided, as many threads as are measured to be worth it.
        processes: processes that divide the shards of every step (training.shards), which changes nothing of the
            weights; default: two where there are two cores, more where as many are free, at most the shards. Under
            torchrun as many as it started, on one host or several (docs/scaling.md).
        device: cpu, cuda, cuda:1 ...; default: the best there is.
        licence: of the data, e.g. "CC BY 4.0"; the model's card names it beside the data files.
        tensorboard: write TensorBoard files too, below training/tensorboard.
    """

    output: Annotated[Path | None, Parameter(group=RUN)] = None
    task: Annotated[str | None, Parameter(group=RECIPE)] = None
    train: Annotated[list[Path] | None, Parameter(group=DATA)] = None
    valid: Annotated[Path | None, Parameter(group=DATA)] = None
    start_from: Annotated[Path | None, Parameter(name="--from", group=DATA)] = None
    source: Annotated[list[Path] | None, Parameter(group=DATA)] = None
    target: Annotated[list[Path] | None, Parameter(group=DATA)] = None
    pairs: Annotated[list[Path] | None, Parameter(group=DATA)] = None
    columns: Annotated[str | None, Parameter(group=DATA)] = None
    weights: Annotated[list[float] | None, Parameter(name="--weight", group=DATA)] = None
    valid_source: Annotated[Path | None, Parameter(group=DATA)] = None
    valid_target: Annotated[Path | None, Parameter(group=DATA)] = None
    source_language: Annotated[str | None, Parameter(group=DATA)] = None
    target_language: Annotated[str | None, Parameter(group=DATA)] = None
    recipe: Annotated[Path | None, Parameter(group=RECIPE)] = None
    preset: Annotated[str | None, Parameter(group=RECIPE)] = None
    settings: Annotated[list[str] | None, Parameter(name="--set", group=RECIPE)] = None
    minutes: Annotated[float | None, Parameter(group=RECIPE)] = None
    steps: Annotated[int | None, Parameter(group=RECIPE)] = None
    seed: Annotated[int | None, Parameter(group=RECIPE)] = None
    resume: Annotated[Literal["auto", "must", "never"], Parameter(group=RUN)] = "auto"
    allow_mismatch: Annotated[list[str] | None, Parameter(group=RUN)] = None
    despite_check: Annotated[bool, Parameter(group=RUN, negative="")] = False
    threads: Annotated[int | None, Parameter(group=RUN)] = None
    processes: Annotated[int | None, Parameter(group=RUN)] = None
    device: Annotated[str | None, Parameter(group=RUN)] = None
    licence: Annotated[str | None, Parameter(group=DATA)] = None
    tensorboard: Annotated[bool, Parameter(group=RUN, negative="")] = False


NO_OPTIONS = TrainOptions()


def train(*, options: TrainOptions = NO_OPTIONS) -> int:
    """Train a translator from two files of sentences, or a model of another task from one file.

    A translator's files are line by line each other's translation. Everything else has a default that suits the size
    of the data. The run can be stopped (Ctrl-C) or killed at any time; the same command resumes it.
    """
    if options.output is None:
        raise UsageError("say where the model goes: --output DIR")
    if options.task in (None, "translation") and not options.train:
        source, target = options.source or (), options.target or ()
        if not (source or target or options.pairs):
            raise UsageError("nothing to learn from: give --source FILE and --target FILE, or --pairs FILE")
        if len(source) != len(target):
            raise UsageError(f"{len(source)} --source but {len(target)} --target; they go in pairs")
    if (options.valid_source is None) != (options.valid_target is None):
        raise UsageError("give both --valid-source FILE and --valid-target FILE, or neither")
    check_threads(options.threads)
    if options.processes is not None and options.processes < 1:
        raise UsageError(f"must be at least 1, not {options.processes}", "--processes")
    if os.environ.get("RANK", "0") != "0":  # where the first process is lost, torch would show its stack in C++
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from regard.runs.train import train as trained
    from regard.training.reporters import reporter

    given = {name: value for name, value in vars(options).items() if value is not None}
    with Stop() as stop, reporter(watch=explore_command(options.output)) as shown:
        made = trained(**given, reporter=shown, should_stop=stop)
    if made is None:  # another process of the same run says it
        return 0
    use, look = example(made.info, options.output), explore_command(options.output)
    result(f"The model is in {options.output}. To use it, and to look into it:\n\n  {use}\n  {look}\n")
    return 0
