"""What was found of the demonstration's pronouns, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.text.counts import agreeing, counted

if TYPE_CHECKING:
    from regard.models.ablation import Head
    from regard.runs.demo.ablation_study import AblationStudy, HeadFinding
    from regard.runs.demo.grammar.scores import Shares

KINDS = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder"}


def name(head: Head) -> str:
    """A head in a few characters: encoder 3·2 is head 2 of the encoder's layer 3."""
    return f"{KINDS[head.kind]} {head.layer}·{head.head}"


def names(heads: Sequence[Head]) -> str:
    """Several heads."""
    return ", ".join(map(name, heads))


def study_lines(study: AblationStudy) -> list[str]:
    """The findings, a line each; numbers are those of right pronouns."""
    return [f"  {title:<28} {said}" for title, said in _findings(study)]


def _findings(study: AblationStudy) -> list[tuple[str, str]]:
    of, found = study.sentences, list[tuple[str, str]]()
    found.append(
        (
            "with all heads",
            f"{study.right:,} of {of:,} right; always the commonest of these pronouns: {study.commonest:,}",
        )
    )
    for kind in ("encoder", "cross"):
        if looking := study.looking(kind):
            found.append((f"looks best, {KINDS[kind]}", _look(looking[0])))
    costliest = min(study.heads, key=lambda one: one.right)
    found.append(("costs most alone", f"{name(costliest.head)}: {costliest.right:,} right without it"))
    lookers, together = study.without_lookers.heads, study.without_lookers.right
    half = f"more than {study.heads[0].half:.0%}"
    if lookers:
        said = agreeing(f"{counted(len(lookers), 'head')} [gives|give] the noun {half}; ", len(lookers))
        said += agreeing(f"{together:,} right without [it|them]", len(lookers))
    else:
        said = f"no head gives the noun {half}"
    found.append(("all that look", said))
    if study.smallest is None:
        found.append(("smallest set", f"none found: more than {study.guess:.0%} are right without any head"))
    elif not study.smallest.heads:
        found.append(("smallest set", "the pronoun is a guess with all heads"))
    else:
        said = f"{names(study.smallest.heads)}: {study.smallest.right:,} right without it"
        found.append(("smallest set found", said))
    found.append(("spare", f"{study.spare} of {counted(len(study.heads), 'head')} cost nothing when removed alone"))
    return found


def _look(found: HeadFinding) -> str:
    assert found.shares
    return f"{name(found.head)}: {where(found.shares)}; {found.right:,} right without it"


def where(shares: Shares) -> str:
    """Where a pronoun looks, in words; the English pronoun comes first where it gets more than the antecedent."""
    nouns = f"{shares.antecedent:.0%} on the antecedent, {shares.rival:.0%} on the other noun"
    return f"{shares.pronoun:.0%} on “it”, {nouns}" if shares.on_pronoun else nouns
