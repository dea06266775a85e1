"""The table of laws names every law of the plan, every family, and tests that exist."""

import re
from pathlib import Path

from regard.config import FAMILIES as SECTIONS
from tests.laws.laws import LAWS

TESTS = Path(__file__).parents[1]
FAMILIES = set(SECTIONS)


def test_every_law_of_the_plan_is_there() -> None:
    assert set(LAWS) == set(
        "resume store causal refilling probe neighbours state ways order weights search text gradient".split()
    )


def test_every_family_is_covered_or_excepted_with_a_reason() -> None:
    for name, law in LAWS.items():
        assert set(law.families) | (set(law.excepted) & FAMILIES) == FAMILIES, name
        assert all(len(reason) > 10 for reason in law.excepted.values()), name


def test_the_tests_that_hold_the_laws_exist() -> None:
    for name, law in LAWS.items():
        assert law.held, name
        for place in law.held:
            file, _, function = place.partition("::")
            path = TESTS / file
            if function:
                assert re.search(rf"^def {function}\(", path.read_text(encoding="utf-8"), re.MULTILINE), place
            else:
                assert list(path.glob("test_*.py")), place
