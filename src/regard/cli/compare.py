"""``regard compare``: recipes trained on the same data and budget, or finished translators on one test set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from regard.cli.io.input_texts import read_both
from regard.cli.io.load_model import check_threads, open_model
from regard.cli.io.terminal import Stop, result, result_json, say
from regard.system.errors import UsageError
from regard.text.counts import counted

DATA = Group("Data", sort_key=1)
BUDGET = Group("Budget", sort_key=2)
RUN = Group("Run", sort_key=3)
PLAIN = re.compile(r"\w[\w.-]{0,79}")
"""Allowed file names."""


def compare(
    recipes: Annotated[list[Path], Parameter(name="RECIPE...")],
    /,
    *,
    source: Annotated[list[Path] | None, Parameter(group=DATA)] = None,
    target: Annotated[list[Path] | None, Parameter(group=DATA)] = None,
    valid_source: Annotated[Path | None, Parameter(group=DATA)] = None,
    valid_target: Annotated[Path | None, Parameter(group=DATA)] = None,
    test_source: Annotated[Path | None, Parameter(group=DATA)] = None,
    test_target: Annotated[Path | None, Parameter(group=DATA)] = None,
    minutes: Annotated[float | None, Parameter(group=BUDGET)] = None,
    steps: Annotated[int | None, Parameter(group=BUDGET)] = None,
    seeds: Annotated[list[int] | None, Parameter(group=BUDGET, consume_multiple=True)] = None,
    fraction: Annotated[list[float] | None, Parameter(group=BUDGET, consume_multiple=True)] = None,
    output: Annotated[Path | None, Parameter(group=RUN)] = None,
    name: Annotated[str, Parameter(group=RUN)] = "table",
    lowercase: Annotated[bool, Parameter(group=RUN)] = False,
    json: Annotated[bool, Parameter(group=RUN)] = False,
    despite_check: Annotated[bool, Parameter(group=RUN, negative="")] = False,
    threads: Annotated[int, Parameter(group=RUN)] = 1,
    device: Annotated[str | None, Parameter(group=RUN)] = None,
) -> None:
    """Train several recipes of translators on the same data with the same budget, or score finished ones, side by side.

    One table: parameters, speed, sequential steps and path length by formula, quality after equal time and equal
    steps; and BLEU by the length of the source. The tables are in the output folder after every run. The
    comparison can be stopped or killed at any time; the same command resumes it.

    Of model folders in the place of recipes, with --test-source and --test-target alone: BLEU and chrF of each, and by
    paired bootstrap how probable it is that its difference from the first comes by chance.

    Args:
        recipes: TOML files, e.g. recipes/compare/*.toml, that read the same text; or model folders.
        source: sentences to translate from; may be given several times, plain or gz, xz, zst.
        target: their translations, as many files and lines.
        valid_source: sentences to validate on; default: some split off from the data.
        valid_target: their translations.
        test_source: sentences to score the finished models on, each model once.
        test_target: their translations.
        minutes: duration of each run.
        steps: updates of each run, instead of minutes.
        seeds: a run for each, default 1; of several, mean and 95 % interval are shown.
        fraction: a run on each share of the pairs, e.g. 0.125 0.25 0.5 1; default: all.
        output: the folder that will hold results, tables, and a model folder for each run; always needed.
        name: of the page of tables; another one keeps that of another choice of the same runs.
        lowercase: show BLEU without regard to case.
        json: print a JSON object for each run instead of the tables.
        despite_check: train although the check of the data judges that it would spoil the models.
        threads: processor threads of each run, the same for all of them; more than one seldom pay.
        device: cpu, cuda, cuda:1 ...; default: the best there is.
    """
    if all(path.is_dir() for path in recipes):
        given: dict[str, object] = {"source": source, "target": target, "valid-source": valid_source}
        given |= {"valid-target": valid_target, "minutes": minutes, "steps": steps, "seeds": seeds}
        given |= {"fraction": fraction, "output": output}
        if others := [name for name, value in given.items() if value is not None]:
            raise UsageError("is for recipes; these are model folders", f"--{others[0]}")
        return _compare_models(
            recipes, _require_both("test", test_source, test_target), lowercase, json, device, threads
        )
    if output is None:
        raise UsageError("say where the comparison goes: --output DIR")
    if not source or len(source) != len(target or ()):
        raise UsageError("give at least one --source FILE, and as many --target FILE")
    valid, test = _require_both("valid", valid_source, valid_target), _require_both("test", test_source, test_target)
    if not PLAIN.fullmatch(name):
        raise UsageError(f"{name!r} is no plain name of a file, e.g. table", "--name")
    check_threads(threads)
    from regard.runs.compare import compare as comparing
    from regard.runs.compare.report import ComparisonReport, page
    from regard.runs.compare.results import Result, to_json
    from regard.training.checkpoints.files import Files
    from regard.training.reporters import reporter

    def write(results: list[Result]) -> None:
        """Replace the page of tables."""
        Files().replace(output / f"{name}.md", [page(ComparisonReport(results, lowercase)).encode()])

    budget = comparing.Budget(minutes, steps, tuple(seeds or (1,)), tuple(fraction or (1.0,)))
    with Stop() as stop, reporter() as shown:
        results = comparing.compare(
            recipes,
            comparing.Texts(source, target or (), valid, test),
            budget,
            output,
            device=device,
            threads=threads,
            despite_check=despite_check,
            reporter=shown,
            should_stop=stop,
            shown=write,
        )
    if json:
        for one in results:
            result_json(to_json(one))
    else:
        compared, where = ComparisonReport(results, lowercase), f"All of it is in {output / name}.md."
        result(f"{compared.table().terminal()}\n{compared.by_length().terminal()}\n{where}")


def _compare_models(
    folders: list[Path], test: tuple[Path, Path] | None, lowercase: bool, json: bool, device: str | None, threads: int
) -> None:
    """Translate a test set by each model, and show the scores side by side.

    Raises:
        UsageError: there is no test set, a folder is given twice, or the models translate into different languages.
    """
    if test is None:
        raise UsageError("nothing to score on: give --test-source FILE and --test-target FILE")
    if len({path.resolve() for path in folders}) < max(2, len(folders)):
        raise UsageError("give two model folders or more, each once")
    from regard.runs.compare.models import compare_outputs
    from regard.tasks.kinds import translates
    from regard.tasks.translation.languages import between_files

    sources, references = read_both(*test)
    outputs, language = {}, ""
    for folder in folders:
        task = open_model(folder, device, threads, "evaluate")
        if not translates(task):
            raise UsageError(f"is {task.info.noun}; translators are compared here", str(folder))
        model = between_files(task, test, (None, None))
        if language not in ("", model.direction[1]):
            raise UsageError(f"translates into {model.direction[1]}, the one before into {language}", str(folder))
        language = model.direction[1]
        say(f"{folder}: translating {counted(len(sources), 'sentence')}")
        outputs[str(folder)] = [found[0].text for found in model.nbest(sources, 1, scores=False)]
    found = compare_outputs(outputs, references, language, lowercase)
    if json:
        result_json(found.to_dict())
    else:
        result(found.table().terminal())


def _require_both(name: str, source: Path | None, target: Path | None) -> tuple[Path, Path] | None:
    """Both files, or ``None`` if neither is given.

    Raises:
        UsageError: only one is given.
    """
    if (source is None) != (target is None):
        raise UsageError(f"give both --{name}-source FILE and --{name}-target FILE, or neither")
    return (source, target) if source is not None and target is not None else None
