"""What was found of the pronoun, in words and as a page."""

from dataclasses import replace
from html.parser import HTMLParser

from regard.models.ablation import Head
from regard.runs.demo.ablation_study import AblationStudy, HeadAblation, HeadFinding
from regard.runs.demo.findings import study_lines
from regard.runs.demo.grammar.scores import Shares


def shares(antecedent: float, rival: float, pronoun: float = 0.0) -> Shares:
    return Shares(antecedent, rival, 0.1, 0.05, pronoun)


ENCODER, CROSS, DECODER = Head("encoder", 3, 2), Head("cross", 1, 1), Head("decoder", 1, 2)
FOUND = AblationStudy(
    sentences=300,
    right=298,
    commonest=110,
    heads=(
        HeadFinding(ENCODER, shares(0.91, 0.02), 190),
        HeadFinding(Head("encoder", 1, 1), shares(0.6, 0.4), 297),
        HeadFinding(Head("cross", 1, 2), shares(0.2, 0.1), 290),
        HeadFinding(CROSS, shares(0.03, 0.01, 0.8), 180),
        HeadFinding(DECODER, None, 298),
    ),
    steps=(HeadAblation((CROSS,), 250), HeadAblation((CROSS, ENCODER), 150)),
    smallest=HeadAblation((ENCODER,), 190),
    without_lookers=HeadAblation((ENCODER, Head("encoder", 1, 1)), 140),
)


def test_the_findings_in_a_few_lines() -> None:
    said = "\n".join(study_lines(FOUND))
    assert "298 of 300 right; always the commonest of these pronouns: 110" in said
    assert "encoder 3·2: 91% on the antecedent, 2% on the other noun; 190 right without it" in said
    assert "encoder–decoder 1·1: 80% on “it”, 3% on the antecedent, 1% on the other noun; 180 right" in said
    assert "encoder–decoder 1·1: 180 right without it" in said  # the one that costs most
    assert "2 heads give the noun more than 50%; 140 right without them" in said
    assert "encoder 3·2: 190 right without it" in said
    assert "2 of 5 heads cost nothing" in said
    one = replace(FOUND, without_lookers=HeadAblation((ENCODER,), 190))
    assert "1 head gives the noun more than 50%; 190 right without it" in "\n".join(study_lines(one))


def test_a_german_pronoun_that_looks_at_the_noun_is_told_so() -> None:
    heads = (*FOUND.heads[:2], HeadFinding(CROSS, shares(0.9, 0.01, 0.05), 180))
    said = "\n".join(study_lines(replace(FOUND, heads=heads)))
    assert "encoder–decoder 1·1: 90% on the antecedent, 1% on the other noun; 180 right" in said
    assert "“it”" not in said


def test_a_model_that_needs_no_head() -> None:
    none = replace(FOUND, smallest=None, without_lookers=HeadAblation((), 298), heads=FOUND.heads[2:])
    said = "\n".join(study_lines(none))
    assert "no head gives the noun more than 50%" in said
    assert "more than 70% are right without any head" in said


def test_a_model_that_guesses() -> None:
    said = "\n".join(study_lines(replace(FOUND, right=150, steps=(), smallest=HeadAblation((), 150))))
    assert "the pronoun is a guess with all heads" in said


class Tags(HTMLParser):
    """Opened and closed elements, and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells = 0
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]
        self.cells += tag == "td"
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
