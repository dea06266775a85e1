"""What was found of the demonstration's pronouns, in a few lines for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from regard.explore.pictures.svg import FONT
from regard.text.counts import agreeing, counted

if TYPE_CHECKING:
    from regard.data.demo.grammar.scores import Shares
    from regard.models.ablation import Head
    from regard.runs.demo.ablation_study import AblationStudy, HeadFinding

KINDS = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder"}
STYLE = f"""
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 {FONT}; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328; background: #fff }}
h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1.1rem; margin-top: 2rem }}
svg {{ max-width: 100%; height: auto }}
div {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums }}
th, td {{ padding: 0.2rem 0.7rem; text-align: right; border-bottom: 1px solid #d0d7de }}
th:first-child, td:first-child {{ text-align: left }}
.soft {{ color: #656d76 }}
@media (prefers-color-scheme: dark) {{
body {{ color: #e6edf3; background: #0d1117 }} th, td {{ border-color: #3d444d }} .soft {{ color: #9198a1 }}
}}"""


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


def study_html(study: AblationStudy, pictures: Sequence[str]) -> str:
    """The findings as a page of its own, for any browser and without network.

    Args:
        study: what was found.
        pictures: of the sentence, in SVG.
    """
    findings = "".join(
        f"<tr><td>{escape(title)}</td><td style='text-align:left'>{escape(said)}</td></tr>"
        for title, said in _findings(study)
    )
    steps = "".join(f"<tr><td>{escape(name(step.heads[-1]))}</td><td>{step.right:,}</td></tr>" for step in study.steps)
    heads = "".join(_row(one) for one in study.heads)
    of = f"{study.sentences:,}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>How this model resolves “it”</title><style>{STYLE}</style></head><body>
<h1>How this model resolves “it”</h1>
<p>{of} sentences that the model never saw, each with two nouns that <em>it</em> may stand for. They differ in German
gender, so that <em>er</em>, <em>sie</em> or <em>es</em> shows which one the model took. Heads are named by layer and
number: encoder 3·2 is head 2 of the encoder's layer 3. The part of the sum of a head that is removed is zero.</p>
{"".join(f"<div>{picture}</div>" for picture in pictures)}
<h2>What was found</h2>
<div><table>{findings}</table></div>
<h2>Heads removed one after another</h2>
<p>Each time the head whose removal costs most, until at most {study.guess:.0%} are right.</p>
<div><table><tr><th>and without</th><th>right, of {of}</th></tr>{steps}</table></div>
<h2>Every head</h2>
<p>How much of the pronoun's attention is on the noun it stands for and on the other one, and how much of the German
pronoun's is on <em>it</em>, in the mean; and how many pronouns are right when this head alone is removed. Decoder heads
look at German words only.</p>
<div><table><tr><th>head</th><th>antecedent</th><th>other noun</th><th>“it”</th><th>right without it</th></tr>{heads}
</table></div>
<p class="soft">Where a head looks does not say that the model needs it; only its removal does, and a model may have two
ways. Other seeds and processors give other heads.</p>
</body></html>
"""


def _row(one: HeadFinding) -> str:
    shares = ["", "", ""]
    if one.shares is not None:
        shares = [f"{one.shares.antecedent:.1%}", f"{one.shares.rival:.1%}", ""]
        if one.head.kind == "cross":
            shares[2] = f"{one.shares.pronoun:.1%}"
    cells = "".join(f"<td>{cell}</td>" for cell in (*shares, f"{one.right:,}"))
    return f"<tr><td>{escape(name(one.head))}</td>{cells}</tr>"
