"""``regard.explore(model)``: the page from Python, of loaded models and of own modules."""

import json
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest
import torch
from torch import nn

import regard
from regard.library.served import heads_page
from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.layout import Layout, Sequences
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused

TOKENS = ["the", "<b>", "sat"]


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.look = MultiHeadAttention(8, 2, 4, 4)

    def forward(self, lengths: list[int]) -> torch.Tensor:
        sequences = Sequences.end_to_end(lengths)
        x_TD = torch.ones(sum(lengths), 8)
        return self.look(x_TD, x_TD, Layout(sequences, sequences), causal=True)


def read(url: str) -> str:
    with urlopen(url, timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def test_a_loaded_model_is_on_the_page(model: Callable[[str], Any]) -> None:
    with regard.explore(model("translator"), port=0) as page:
        assert "<!doctype html>" in read(page.url).lower()
        assert len(json.loads(read(f"{page.url}api/state"))["models"]) == 1
        assert page.url in repr(page)
    page.close()
    assert "closed" in repr(page)
    with pytest.raises(OSError, match="refused"):
        read(page.url)


def test_an_own_module_is_on_the_page_with_its_heads_named() -> None:
    own = Own()
    with regard.explore(own, run=lambda: own([3]), tokens=TOKENS, port=0) as page:
        found = read(page.url)
        assert "color-scheme" in read(f"{page.url}assets/own.css")
    assert "<code>look</code>" in found
    assert found.count("<details>") == 2
    assert own.training


@pytest.mark.parametrize(
    ("where", "lengths", "tokens"),
    [("tokens", [3], ["one"]), ("run", [2, 1], TOKENS), ("run", [], TOKENS)],
)
def test_what_does_not_fit_is_refused(where: str, lengths: list[int], tokens: list[str]) -> None:
    own = Own()
    with refused(UsageError, where):
        heads_page(own, lambda: own(lengths) if lengths else None, tokens)


def test_options_of_the_other_kind_are_refused(model: Callable[[str], Any]) -> None:
    with refused(UsageError, "run"):
        regard.explore(model("translator"), run=print, tokens=[])  # type: ignore[call-overload]
    with refused(UsageError, "tokens"):
        regard.explore(Own(), run=print)  # type: ignore[call-overload]
    with refused(UsageError, "model"):
        heads_page(nn.Linear(2, 2), print, TOKENS)


def test_too_many_tokens_and_weights_without_values_are_refused() -> None:
    own = Own()
    with refused(RegardError, "tokens"):
        heads_page(own, lambda: own([65]), ["a"] * 65)
    nn.init.constant_(own.look.query.weight, float("nan"))
    with refused(RegardError, "look.query.weight"):
        heads_page(own, lambda: own([3]), TOKENS)
