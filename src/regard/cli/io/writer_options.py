"""Options of the commands whose models write for texts: how an output is found or drawn, what it contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Group, Parameter

from regard.cli.io.exchange import Exchange
from regard.cli.io.load_model import refuse_no_file
from regard.cli.io.terminal import say
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.text.output_options import OutputOptions
    from regard.tasks.text.terms import Terminology
    from regard.text.terms import TermList

DRAWING = Group("Drawing", sort_key=1)
SETTINGS_HELP = (
    "decoding.KEY=VALUE, another value than the recipe's: length_penalty, min_length, max_length, no_repeat_ngram, "
    "repetition_penalty, stopping, term_bonus, shortlist (of a student of Marian, faster); docs/generate.md names all."
)
WITH_HELP = (
    "another model folder of the same task, languages and vocabulary; may be given several times. Each token is chosen "
    "by the mean of the probabilities of all models."
)
With = Annotated[list[Path] | None, Parameter(name="--with", help=WITH_HELP)]
Settings = Annotated[list[str] | None, Parameter(name="--set", help=SETTINGS_HELP)]
Number = Annotated[float | None, Parameter(group=DRAWING)]
Whole = Annotated[int | None, Parameter(group=DRAWING)]
AnyTask = TypeVar("AnyTask", bound=Any)


@Parameter(name="*")
@dataclass(frozen=True)
class SamplingOptions:
    """The options of every command that draws texts.

    Args:
        temperature: 1 samples from the model, less is safer, 0 takes the most probable token every time.
        top_k: sample from this many tokens, the most probable ones.
        top_p: sample from the fewest tokens whose total probability reaches this.
        min_p: sample from tokens with at least this share of the most probable one's probability.
        typical: sample from the tokens closest to the expected surprisal, up to this total probability.
        repetition_penalty: penalise tokens that occurred before; 1 does nothing.
    """

    temperature: Number = None
    top_k: Whole = None
    top_p: Number = None
    min_p: Number = None
    typical: Number = None
    repetition_penalty: Number = None

    @property
    def values(self) -> dict[str, float]:
        """Those that are given, by name.

        Raises:
            UsageError: a value does not fit.
        """
        from regard.tasks.text.task import sampling_values

        return sampling_values(asdict(self), "drawing")


NO_SAMPLING = SamplingOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class TermOptions:
    """What outputs contain and what they do not.

    Args:
        terms: a file of terms, a line each with source, tab and target, other forms behind |, or = for what is kept
            as it is: where a text has the source, its output has one of the forms. A source in small letters
            matches in any case. Default: those of the model folder (regard terms).
        protect: numbers, addresses, placeholders (%(x)s, {name}, %d) and tags of a text come out unchanged.
        forbid: a file of words and phrases, a line each, that no output has; in small letters in any case.
    """

    terms: Path | None = None
    protect: bool = False
    forbid: Path | None = None

    def about(self, searches: bool) -> dict[str, object]:
        """What results depend on: fingerprints of the files.

        Args:
            searches: whether the best outputs are searched for.

        Raises:
            UsageError: there is no such file, or nothing is searched for.
        """
        files = {"--terms": self.terms, "--forbid": self.forbid}
        given = [name for name, value in {**files, "--protect": self.protect}.items() if value]
        if given and not searches:
            others = "--sample, --mbr without --beam, and --alternatives"
            raise UsageError(f"is kept by a search for the best outputs; leave {others} out", given[0])
        for path in filter(None, files.values()):
            refuse_no_file(path)
        found = {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path}
        return {**found, **({"--protect": True} if self.protect else {})}

    def terminology(self, own: TermList | None) -> Terminology | None:
        """That of the options, with the terms of the model folder where no file is given; None without any option.

        Raises:
            RegardError: a line of a file is no term, or the files do not go together.
        """
        if not (self.terms or self.protect or self.forbid):
            return None
        from regard.tasks.text.terms import Terminology

        return Terminology.read(self.terms, self.protect, self.forbid, own)


NO_TERM_OPTIONS = TermOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class WriterOptions:
    """The options of ``regard translate`` and ``ask`` that say how an output is found.

    Args:
        beam: hypotheses kept while searching; 1 is fastest; default: the recipe's.
        with_: other models.
        mbr: show of this many candidates that which is most like the others (minimum Bayes risk): of drawn ones, or
            with --beam of the best; where several outputs are shown the next ones after it, too.
        wording: terms.
        sample: draw outputs instead of searching for the most probable.
        seed: another seed, other drawn outputs; default: the recipe's.
        drawing: how.
        settings: of the recipe.
    """

    beam: int | None = None
    with_: With = None
    mbr: int | None = None
    wording: TermOptions = NO_TERM_OPTIONS
    sample: Annotated[bool, Parameter(group=DRAWING)] = False
    seed: Annotated[int | None, Parameter(group=DRAWING)] = None
    drawing: SamplingOptions = NO_SAMPLING
    settings: Settings = None

    def outputs(self, n: int, guard: Literal["warn", "retry"] | None = None) -> OutputOptions:
        """What is wanted of each text.

        Raises:
            UsageError: numbers do not fit, or options do not go together.
        """
        from regard.tasks.text.output_options import OutputOptions

        return OutputOptions(n, self.beam, self.sample, self.mbr, self.seed, self.drawing.values, guard)

    def about(self, searches: bool) -> dict[str, object]:
        """What results depend on; ``searches``: whether the best outputs are searched for, which keeps terms.

        Raises:
            UsageError: terms are given, but nothing is searched for.
        """
        found = {f"--{name}": getattr(self, name) for name in ("beam", "mbr", "sample", "seed")}
        return {**found, "--set": self.settings, **self.drawing.values, **self.wording.about(searches)}

    def apply(self, exchange: Exchange, task: AnyTask, searches: bool) -> AnyTask:
        """The model with others, terms and settings; ``searches`` as :meth:`about` has it."""
        task = open_others(exchange, task, self.with_)
        if (terms := self.wording.terminology(task.assets.terms)) is not None:
            task.terminology = terms
        elif task.assets.terms and task.assets.terms.entries and not searches:
            say("the model's terms are kept by searches only, not in what is drawn, nor in alternatives")
        return task.with_settings(self.settings) if self.settings else task


NO_WRITER_OPTIONS = WriterOptions()


def open_others(exchange: Exchange, task: AnyTask, paths: Sequence[Path] | None) -> AnyTask:
    """The model, with others of which --with names the folders as an ensemble."""
    if not paths:
        return task
    from regard.tasks.text.task import with_models

    return with_models(task, exchange.folder, {path: exchange.open_beside("--with", path) for path in paths})
