"""What a model says of itself in Python and in a notebook."""

from collections.abc import Callable
from pathlib import Path

import pytest

import regard
from regard.library.summary import card_scores
from tests.tasks.small_tasks import EVERY, put, translator

RUN = Path(__file__).parents[1] / "fixtures" / "runs" / "translator" / "model"
CARD = """# A translator

## Scores on the validation data

* BLEU 23.10 (beam 5; `nrefs:1|case:mixed`)
* chrF <40.20> (beam 5; `nrefs:1`)

## Training

12 steps.
"""


@pytest.mark.parametrize("name", EVERY)
def test_one_line_of_every_model(name: str, model: Callable[[str], regard.Model]) -> None:
    found = model(name)
    count = sum(weight.numel() for weight in found.model.parameters())
    assert repr(found).startswith(f"<{type(found).__name__} '{name}'")
    assert f"{count:,} parameters" in repr(found)
    assert "\n" not in repr(found)
    assert f"{count:,} parameters" in found._repr_html_()


def test_languages_labels_and_changes(model: Callable[[str], regard.Model]) -> None:
    assert "en → de" in repr(model("translator"))
    assert "bad, fair, good" in repr(model("classifier"))
    assert "1·2" in repr(model("translator").without(heads=[("cross", 1, 2)]))


def test_scores_are_those_of_the_card(tmp_path: Path) -> None:
    folder = put(tmp_path / "model", translator())
    assert card_scores(folder) == ()
    (folder / "card.md").write_text(CARD, encoding="utf-8")
    assert card_scores(folder) == ("BLEU 23.10 (beam 5; `nrefs:1|case:mixed`)", "chrF <40.20> (beam 5; `nrefs:1`)")
    found = regard.load(folder, device="cpu")
    assert "BLEU 23.10; chrF <40.20>" in repr(found)
    assert "chrF &lt;40.20&gt;" in found._repr_html_()


def test_scores_of_a_trained_model() -> None:
    assert card_scores(RUN) == ("At step 5: loss 5.593 nats a token.",)
