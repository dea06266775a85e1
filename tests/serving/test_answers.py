"""What single models say to a server's clients."""

import re
from collections.abc import Iterator
from contextlib import closing, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from regard.inspection import SHIPPED
from regard.serving.answers import Answers
from regard.serving.core import Call, ServiceError
from regard.serving.models import ServedModels
from regard.serving.search.request import CALL
from regard.serving.search.threads import SearchThreads
from regard.serving.service import TranslationService
from regard.serving.store import Store
from regard.serving.translate import Translator
from regard.system.errors import RegardError

TEXT = "The animal didn't cross the street because it was too tired."


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    searching = SearchThreads(1)
    with closing(Store.open(None)) as store:
        yield Answers(Translator(ServedModels([f"en:de={SHIPPED[0]}"]), searching, store.memory))
    searching.end()


def asked(answers: Answers, name: str, **fields: Any) -> Any:
    kind, answer = answers.kinds[name]
    CALL.set(Call())
    return answer(kind(**fields))


def test_other_words_are_those_of_the_translation_that_is_given(answers: Answers) -> None:
    own = asked(answers, "words", text=TEXT, target="de", n=2)["words"]
    best = asked(answers, "attention", text=TEXT, target="de")["target"]
    assert own == asked(answers, "words", text=TEXT, target="de", n=2, translation=best)["words"]
    begin, word, other = next(
        (one["begin"], best[one["begin"] : one["end"]], other["text"]) for one in own for other in one["others"]
    )
    assert other != best
    words = asked(answers, "words", text=TEXT, target="de", n=2, translation=other)["words"]
    assert "".join(other[one["begin"] : one["end"]] for one in words) == other.replace(" ", "")
    [others] = [one["others"] for one in words if one["begin"] == begin]
    assert word in [one["word"] for one in others]
    assert all(one["text"].startswith(other[:begin]) for one in others)


def test_a_translation_may_not_be_longer_than_the_model_writes(answers: Answers) -> None:
    with pytest.raises(RegardError, match="translations"):
        asked(answers, "words", text=TEXT, target="de", translation="Tier " * 2000)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("words", {"text": "a" * 2_001, "target": "de"}, "text: string should have at most 2000 characters"),
        ("classify", {"texts": ["a" * 20_001]}, "texts.0: string should have at most 20000 characters"),
        ("score", {"texts": ["a"], "translations": ["a" * 20_001], "target": "de"}, "translations.0"),
    ],
)
def test_texts_are_no_longer_than_the_limits(answers: Answers, name: str, fields: Any, message: str) -> None:
    with pytest.raises(ServiceError, match=message) as refused:
        TranslationService.check(answers.kinds[name][0], fields)
    assert refused.value.status == 400


def test_of_many_gaps_few_guesses_are_written(answers: Answers) -> None:
    class Filler:
        gaps = SimpleNamespace(pattern=re.compile(r"\[MASK\]|<mask>"))  # as in an imported model

        def fill(self, texts: list[str], k: int) -> list[Any]:
            return [[] for _ in texts]

    filler, text = Filler(), "[MASK] <mask>" * 50 + "a" * 1_100
    with (
        patch.object(answers, "_model", lambda *_: nullcontext(filler)),
        patch("regard.serving.answers.fills_words", lambda task: True),
    ):
        assert asked(answers, "fill", texts=[text], k=20) == {"texts": [{"gaps": []}]}
        with pytest.raises(ServiceError, match="fewer gaps"):
            asked(answers, "fill", texts=[text] * 2, k=20)
