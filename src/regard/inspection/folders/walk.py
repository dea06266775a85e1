"""The guided walk of a demonstration: what was found of its pronouns, in ``walk.json`` beside the model's folder.

It is written from the values of :mod:`regard.runs.demo.ablation_study`, and read without torch.
"""

from __future__ import annotations

import os
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, Strict, TypeAdapter, ValidationError

from regard.config import FORMAT, checksum
from regard.config.families import Model
from regard.inspection.forward.record import Kind, every_head
from regard.inspection.requests import BaseFields, Count, Number, Whole
from regard.runs.demo import NAME as WITHOUT
from regard.system import VERSION, disk
from regard.system.errors import RegardError

if TYPE_CHECKING:
    from regard.runs.demo.ablation_study import AblationStudy

NAME = "walk.json"
PRONOUN = "it"
"""The English word that the walk is about."""
CORPUS = "corpus"
"""What a demonstration's folder has beside its model."""
LARGEST = 1 << 20
"""Bytes the file may have; more are not read."""
FOREIGN = "is no walk of this model"
NO_WALK = "the guided walk cannot be shown"
ANEW = "rerun regard demo with --output {}, which writes it anew"
NO_WALK_STATE: dict[str, object] = {"walk": None, "walk_why": None, "classic": None}
"""State of a folder without a walk, of another model than a demonstration's."""

Text = Annotated[str, Strict(), Field(min_length=1, max_length=1000)]
Share = Annotated[float, Strict(), Field(ge=0, le=1 + 1e-6, allow_inf_nan=False)]


@dataclass(frozen=True)
class WalkHead(BaseFields):
    """A head, as in :class:`~regard.models.ablation.Head`."""

    kind: Kind
    layer: Number
    head: Number


@dataclass(frozen=True)
class WalkShares(BaseFields):
    """Where the pronoun looks, as in :class:`~regard.runs.demo.grammar.scores.Shares`."""

    antecedent: Share
    rival: Share
    nouns: Share
    chance: Share
    pronoun: Share


@dataclass(frozen=True)
class WalkFinding(BaseFields):
    """One head, as in :class:`~regard.runs.demo.ablation_study.HeadFinding`."""

    head: WalkHead
    shares: WalkShares | None
    right: Whole


Heads = Annotated[tuple[WalkHead, ...], Field(max_length=10_000)]


@dataclass(frozen=True)
class WalkAblation(BaseFields):
    """Heads removed together, as in :class:`~regard.runs.demo.ablation_study.HeadAblation`."""

    heads: Heads
    right: Whole


@dataclass(frozen=True)
class WalkStudy(BaseFields):
    """The whole, as in :class:`~regard.runs.demo.ablation_study.AblationStudy`."""

    sentences: Count
    right: Whole
    commonest: Whole
    heads: Annotated[tuple[WalkFinding, ...], Field(min_length=1, max_length=10_000)]
    steps: Annotated[tuple[WalkAblation, ...], Field(max_length=100)]
    smallest: WalkAblation | None
    without_lookers: WalkAblation
    spare: Whole

    @property
    def ablations(self) -> tuple[WalkAblation, ...]:
        """All heads that were removed together."""
        return (*self.steps, self.without_lookers, *([self.smallest] if self.smallest else []))


@dataclass(frozen=True)
class WalkSentence(BaseFields):
    """A sentence and what the grammar knows of it.

    Args:
        source, target: English, and its translation.
        antecedent, rival: the English nouns that the pronoun stands for, and could stand for.
        pronoun: the German one.
    """

    source: Text
    target: Text
    antecedent: Text
    rival: Text
    pronoun: Text


@dataclass(frozen=True)
class Walk(BaseFields):
    """What the page tells of a demonstration, step by step.

    Args:
        weights: sha256 of the file of weights that it was measured with.
        version: of Regard.
        pronoun: the English word that it is about.
        sentences: the classic ones.
        encoder, cross: the heads that look best where the gender can be learned.
        guess: share of right pronouns at which the pronoun counts as a guess; ``half``: of its attention that a head
            must give the antecedent to count as one that looks there; ``tolerance``: of the pronouns that a removal may
            cost and still count as nothing.
        study: of every head.
    """

    weights: Annotated[str, Strict(), Field(pattern="^[0-9a-f]{64}$")]
    version: Text
    pronoun: Text
    sentences: Annotated[tuple[WalkSentence, ...], Field(min_length=1, max_length=16)]
    encoder: WalkHead | None
    cross: WalkHead | None
    guess: Share
    half: Share
    tolerance: Share
    study: WalkStudy

    def fits(self, section: Model) -> bool:
        """Whether it can be of a model of this section: it names all of its heads and no other."""
        study = self.study
        there = {*every_head(section.attention)}
        listed = [one.head for one in study.heads]
        named = {*listed, *(one for some in study.ablations for one in some.heads)}
        counts = [study.commonest, study.right, *(one.right for one in study.heads)]
        counts += [one.right for one in study.ablations]
        return (
            len(listed) == len(there)
            and {astuple(one) for one in named} == there
            and {self.encoder, self.cross} - {None} <= {one.head for one in study.heads if one.shares}
            and all(one is None or one.kind == kind for kind, one in (("encoder", self.encoder), ("cross", self.cross)))
            and self.pronoun == PRONOUN
            and max(counts) <= study.sentences
            and study.spare <= len(listed)
        )


_VALUES: TypeAdapter[Walk] = TypeAdapter(Walk)


def walk_path(folder: Path) -> Path | None:
    """Where the walk of a model folder lies; ``None`` for one that is not part of a demonstration's folder."""
    whole = Path(os.path.realpath(folder))
    return whole.parent / NAME if whole.name == "model" else None


def measurements(folder: Path) -> Path | None:
    """Where it lies what a demonstration's model does without an idea; ``None`` where there is no such file."""
    walk = walk_path(folder)
    path = walk and walk.with_name(WITHOUT)
    return path if path and path.is_file() and (path.parent / CORPUS).is_dir() else None


def classic_values() -> dict[str, object]:
    """The two sentences whose picture the page of a demonstration begins with, measured or not."""
    from regard.runs.demo.grammar import classic, words_of
    from regard.runs.demo.grammar.phrases import PRONOUN as GERMAN

    sentences = []
    for pair in classic():
        words, found = words_of(pair.source), pair.pronoun
        assert found
        nouns = (words[found.antecedent_words[-1]], words[found.rival_words[-1]])
        sentences.append(WalkSentence(pair.source, pair.target, *nouns, GERMAN[found.antecedent_gender]))
    return {"pronoun": PRONOUN, "sentences": [asdict(one) for one in sentences]}


def write_walk(study: AblationStudy, weights: str) -> bytes:
    """The content of ``walk.json``.

    Args:
        study: of the model.
        weights: sha256 of its file of weights.
    """
    best = {kind: next((asdict(one.head) for one in study.looking(kind)), None) for kind in ("encoder", "cross")}
    values = {
        "format": FORMAT,
        "weights": weights,
        "version": VERSION,
        **classic_values(),
        **best,
        "guess": study.guess,
        "half": study.heads[0].half,
        "tolerance": study.tolerance,
        "study": study.to_dict(),
    }
    return checksum.dump_json(values)


def walk_state(path: Path, section: Model, weights: str | None) -> dict[str, object]:
    """The walk for the page, and why there is none where its file is no good.

    Args:
        path: of the file; it need not exist.
        section: of the model.
        weights: sha256 of the weights that are there now.
    """
    try:
        if not (path.exists() and (path.parent / CORPUS).is_dir()):  # else it is somebody else's file
            return NO_WALK_STATE
        values = checksum.load_json(disk.content(path, LARGEST, "walk"), path, required=True)
        values.pop("format")
        found = _VALUES.validate_python(values)
        if found.fits(section):
            return {**NO_WALK_STATE, "walk": {**asdict(found), "fits": found.weights == weights}}
        why = FOREIGN
    except (ValidationError, RecursionError):
        why = FOREIGN
    except (OSError, RegardError) as error:
        why = error.message if isinstance(error, RegardError) else error.strerror or str(error)
    return {**NO_WALK_STATE, "walk_why": f"{NO_WALK}: {NAME} {why}; {ANEW.format(path.parent)}"}
