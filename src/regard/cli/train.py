"""``regard train``: trains a model from files of texts, sentence pairs or labelled examples."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from regard.cli.io.load_model import check_threads, example, explore_command
from regard.cli.io.terminal import Stop, result
from regard.runs.train_options import TrainOptions, listed
from regard.system.errors import UsageError

NO_OPTIONS = TrainOptions()


def train(*, options: TrainOptions = NO_OPTIONS) -> int:
    """Train a translator from two files of sentences, or a model of another task from one file.

    A translator's files are line by line each other's translation. Everything else has a default that suits the size
    of the data. The run can be stopped (Ctrl-C) or killed at any time; the same command resumes it.
    """
    output = options.output
    if not isinstance(output, Path):  # the default is for Python
        raise UsageError("say where the model goes: --output DIR")
    if options.task in (None, "translation") and not options.train:
        source, target = listed(options.source), listed(options.target)
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

    with Stop() as stop, reporter(watch=explore_command(output)) as shown:
        made = trained(**vars(replace(options, reporter=shown, should_stop=stop)))
    if made is None:  # another process of the same run says it
        return 0
    use, look = example(made.info, output), explore_command(output)
    result(f"The model is in {output}. To use it, and to look into it:\n\n  {use}\n  {look}\n")
    return 0
