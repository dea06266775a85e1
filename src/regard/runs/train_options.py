"""The options of a training, once for ``regard train``, for ``regard.train`` and for the command on a model's card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Signature, cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_type_hints

from cyclopts import Group, Parameter

from regard.system.errors import UsageError, option_name

P = ParamSpec("P")
T = TypeVar("T")
Inputs = Sequence[Path | str] | Path | str | None
"""One file or several."""
DATA = Parameter(group=Group("Data", sort_key=1), show_default=False)
RECIPE = Parameter(group=Group("Recipe", sort_key=2), show_default=False)
RUN = Parameter(group=Group("Run", sort_key=3), negative="")
PLACE, PLACES = Parameter(metavar="PATH"), Parameter(metavar="PATH...")
PYTHON = Parameter(parse=False)
"""What only a call from Python has."""


@Parameter(name="*", name_transform=lambda name: option_name(name).removeprefix("--"))
@dataclass(frozen=True)
class TrainOptions:
    """The options of a training.

    Args:
        source: sentences to translate from, one file or several; plain or gz, xz, zst.
        target: their translations, as many files and lines; where the pairs of files end in different languages (.en,
            .de), the translator learns each of these directions.
        output: the model folder to make, or to resume; a command always needs it.
        task: translation (the default), text-to-text, classification, sentence-pairs, tagging, language-model,
            masked-lm or image-classification.
        train: what another task than translation learns from, one file or several; plain or gz, xz, zst.
        valid: what it is validated on; default: a tenth, at most ``data.validation``, split off by seed.
        start_from: a model folder to initialise from: its weights, sizes and vocabulary; of a translator also its
            languages and how it decodes. With the setting adapt.rank=8 only small factors (LoRA) are trained and saved,
            and regard merge makes one model of both.
        extend_vocabulary: add at most so many pieces, learned from the new text, to the vocabulary of the translator to
            initialise from: byte pairs of Regard's, or of SentencePiece.
        valid_source: sentences to validate on, one file, or of several languages several; default: some split off from
            the data.
        valid_target: their translations.
        alignment: word links of the lines of the source and target files, 0-0 1-2, as fast_align and regard align write
            them, as many files; with training.guided_alignment, in place of those of the lexical model.
        pairs: a file that holds both sides, TSV, JSONL, TMX, XLIFF or PO; or several.
        columns: where in it: two columns "1,2" of a TSV, two keys "en,de" of a JSONL, two languages "en,de" of a memory
            of more; of other training data the columns of text and label, by number or name, or "label text" where a
            line begins with its label; of text to text those of source and target, or prefix, source and target; of
            running text the key in a JSONL.
        weights: of translation only: how often to draw from each corpus beside the others, one number for each;
            default: by size.
        source_language: code of the source language; default: the recipe's, else from the file's extension; of several
            directions that of files that do not name theirs.
        target_language: code of the target language; default: the recipe's, else from the file's extension.
        recipe: a TOML file that decides everything about model and training; in Python also its values.
        preset: a named size that the task has, e.g. tiny, small, base; bert-tiny; gpt-tiny (regard info gpt-tiny shows
            it); an unknown one is answered with all; not beside a model to initialise from.
        settings: one value of the recipe or several, e.g. model.d_model=512.
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
        tensorboard: write TensorBoard files too, below training/tensorboard.
        licence: of the data, e.g. "CC BY 4.0"; the model's card names it beside the data files.
        reporter: receives progress instead of stderr, as a ``regard.training.log.Reporter``.
        quiet: no output.
        should_stop: called before every step.
        job_class: instead of the task's own job, one that extends it.
    """

    source: Annotated[Inputs, DATA, PLACES] = None
    target: Annotated[Inputs, DATA, PLACES] = None
    output: Annotated[Path | str, RUN, PLACE, Parameter(show_default=False)] = "model"
    _: KW_ONLY
    task: Annotated[str | None, RECIPE] = None
    train: Annotated[Inputs, DATA, PLACES] = None
    valid: Annotated[Path | str | None, DATA, PLACE] = None
    start_from: Annotated[Path | str | None, DATA, PLACE] = None
    extend_vocabulary: Annotated[int | None, RECIPE] = None
    valid_source: Annotated[Inputs, DATA, PLACES] = None
    valid_target: Annotated[Inputs, DATA, PLACES] = None
    alignment: Annotated[Inputs, DATA, PLACES] = None
    pairs: Annotated[Inputs, DATA, PLACES] = None
    columns: Annotated[str | None, DATA] = None
    weights: Annotated[Sequence[float], DATA] = ()
    source_language: Annotated[str | None, DATA] = None
    target_language: Annotated[str | None, DATA] = None
    recipe: Annotated[Path | str | Mapping[str, object] | None, RECIPE, PLACE] = None
    preset: Annotated[str | None, RECIPE] = None
    settings: Annotated[Iterable[str], RECIPE] = ()
    minutes: Annotated[float | None, RECIPE] = None
    steps: Annotated[int | None, RECIPE] = None
    seed: Annotated[int | None, RECIPE] = None
    resume: Annotated[Literal["auto", "must", "never"], RUN] = "auto"
    allow_mismatch: Annotated[Iterable[str], RUN, Parameter(show_default=False)] = ()
    despite_check: Annotated[bool, RUN] = False
    threads: Annotated[int | None, RUN] = None
    processes: Annotated[int | None, RUN] = None
    device: Annotated[str | None, RUN] = None
    tensorboard: Annotated[bool, RUN] = False
    licence: Annotated[str | None, DATA] = None
    reporter: Annotated[Any, PYTHON] = None
    quiet: Annotated[bool, PYTHON] = False
    should_stop: Annotated[Callable[[], bool], PYTHON] = lambda: False
    job_class: Annotated[type[Any] | None, PYTHON] = None


def listed(files: Inputs) -> Sequence[Path | str]:
    """The files as a list."""
    return [files] if isinstance(files, Path | str) else list(files or ())


def taking(options: Callable[P, TrainOptions]) -> Callable[[Callable[[TrainOptions], T]], Callable[P, T]]:
    """Let a function of options take each as an argument; its help lists them.

    Raises:
        UsageError: in a call, an argument is unknown.
    """

    def decorate(function: Callable[[TrainOptions], T]) -> Callable[P, T]:
        @wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> T:
            try:
                asked = options(*given, **named)
            except TypeError as error:
                near = (get_close_matches(name, known, 1) for name in named if name not in known)
                hint = "".join(f" Did you mean {names[0]!r}?" for names in near if names)
                raise UsageError(f"{str(error).partition(' ')[2]}.{hint}", f"{function.__name__}()") from None
            return function(asked)

        hints = get_type_hints(options)
        known = {name: one.replace(annotation=hints[name]) for name, one in signature(options).parameters.items()}
        vars(call)["__signature__"] = Signature(
            [*known.values()], return_annotation=signature(function).return_annotation
        )
        head, colon, rest = cleandoc(function.__doc__ or "").partition("Returns:")
        told = cleandoc(options.__doc__ or "").partition("\n")[2].strip()
        call.__doc__ = f"{head}{told}\n\n{colon}{rest}"
        return call

    return decorate
