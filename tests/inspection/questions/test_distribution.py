"""From what the next token is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regard.inspection.forward.inputs import text_inputs
from regard.inspection.forward.outputs import scores
from regard.system.errors import UsageError
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE

Ask = Callable[..., tuple[dict[str, Any], dict[str, np.ndarray]]]


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, 0), (0.5, 0), (2.0, 3), (0.01, 5)])
def test_the_tokens_are_those_of_a_plain_softmax(
    ask: Ask, task: Callable[[str], Any], temperature: float, top_k: int
) -> None:
    values, _ = ask("distribution", "speaker", place=2, temperature=temperature, top_k=top_k)
    score_V = scores(text_inputs(task("speaker"), SOURCE))[2].numpy()
    plain_V = np.exp(score_V - score_V.max())
    plain_V /= plain_V.sum()
    allowed = np.delete(np.arange(len(score_V)), task("speaker").symbols.without)
    kept = allowed[np.argsort(-score_V[allowed], kind="stable")][: top_k or None]
    share = np.exp((score_V[kept] - score_V[kept].max()) / temperature)
    share /= share.sum()
    shown = len(values["tokens"])
    np.testing.assert_allclose([one[2] for one in values["tokens"]], share[:shown], atol=1e-9)
    np.testing.assert_allclose([one[1] for one in values["tokens"]], plain_V[kept[:shown]], atol=1e-9)
    assert values["kept"] == (share > 0).sum()


def test_what_draws_nothing_is_refused(ask: Ask) -> None:
    with refused(UsageError, "model"):
        ask("distribution", "translator")
    with refused(UsageError, "place"):
        ask("distribution", "speaker", place=4000)
    with refused(UsageError, "temperature"):
        ask("distribution", "speaker", temperature=0.0)
