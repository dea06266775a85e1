"""Notes on the ablations, snapshot and forced target of a pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from regard.explore.questions.export import describe_changes, request_values
from regard.explore.requests import Request, read


def asked(**given: Any) -> Request:
    return read(Request, {"text": "a", **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ""),
        ({"branch": [3, 4]}, ""),  # what the model wrote itself
        ({"snapshot": "step 1,000"}, "With the weights of step 1,000."),
        ({"target": "Das Tier."}, "Made to write “Das Tier.”"),
        ({"changes": {"positions": False, "mask": False}}, "Without positions, the mask."),
        (
            {"changes": {"off": [["encoder", 1, 2], ["cross", 3, 1]], "scaling": False}, "snapshot": "step 2"},
            "Without encoder–decoder head 3·1, encoder head 1·2, scaling. With the weights of step 2.",
        ),
    ],
)
def test_it_is_said(given: dict[str, Any], said: str) -> None:
    assert describe_changes(asked(**given)) == said


def test_values_are_what_was_asked() -> None:
    """They can be asked again."""
    changes = {"off": [["decoder", 2, 1]], "positions": True, "scaling": False, "mask": True}
    one = asked(changes=changes, snapshot="step 2", target="b")
    again = json.loads(json.dumps(request_values(one)))
    assert again == {"snapshot": "step 2", "target": "b", "changes": changes}
    assert asked(**again) == one
