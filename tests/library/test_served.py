"""``regard.explore(model)``: the page from Python, of loaded models and of own modules."""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
import torch
from torch import nn

import regard
from regard.library.served import own_page
from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.layout import Layout, Sequences
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import unpack
from tests.refusals import refused

TOKENS = ["the", "<b>", "sat"]


class Own(nn.Module):
    def __init__(self, heads: tuple[int, ...] = (2,)) -> None:
        super().__init__()
        self.look = nn.ModuleList(MultiHeadAttention(8, count, 4, 4) for count in heads)

    def forward(self, lengths: list[int], causal: bool = True) -> torch.Tensor:
        sequences = Sequences.end_to_end(lengths)
        x_TD = torch.ones(sum(lengths), 8)
        for look in self.look:
            x_TD = look(x_TD, x_TD, Layout(sequences, sequences), causal=causal)
        return x_TD


def payload(page: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values and arrays inside a page."""
    found = re.search(r'id="payload"[^>]*>([^<]*)<', page)
    assert found is not None
    return unpack(b64decode(found[1]))


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
    own = Own((2, 2))
    with regard.explore(own, run=lambda: own([3]), tokens=TOKENS, port=0) as page, urlopen(page.url) as answer:
        found, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    values, arrays = payload(found)
    assert values["model"]["parts"] == {"decoder": ["look.0", "look.1"]}
    assert values["model"]["kinds"] == {"decoder": [2, 2]}
    assert [token["text"] for token in values["source"]] == TOKENS
    assert arrays["weights.decoder"].shape == (2, 2, 3, 3)
    assert "'sha256-" in policy  # of the page's own script
    assert "'self'" not in policy
    assert own.training


def test_weights_are_those_of_the_pass() -> None:
    own = Own()
    with torch.inference_mode(), regard.probe.capture(own.eval(), "*weight") as captured:
        own([3], causal=False)
    values, arrays = payload(own_page(own, lambda: own([3], causal=False), TOKENS)["index.html"].content.decode())
    assert list(values["kinds"]) == ["encoder"]
    (expected,) = captured.values()
    np.testing.assert_array_equal(arrays["weights.encoder"][0], expected.tensors[0].numpy())


@pytest.mark.parametrize(
    ("tokens", "text"), [(["▁the", "▁an", "imal"], "the animal"), (["the", "cat"], "the cat"), ([" a", "b"], "ab")]
)
def test_tokens_say_where_a_space_stands_or_none_does(tokens: list[str], text: str) -> None:
    own = Own()
    values, _ = payload(own_page(own, lambda: own([len(tokens)]), tokens)["index.html"].content.decode())
    assert values["source_text"] == text
    assert text.replace(" ", "") == "".join(text[one["start"] : one["end"]] for one in values["source"])


def test_parts_that_differ_in_heads_are_pictures() -> None:
    own = Own((2, 4))
    found = own_page(own, lambda: own([3]), TOKENS)
    page = found["index.html"].content.decode()
    assert page.count("<code>look.0</code>") == page.count("<code>look.1</code>") == 1
    assert page.count("<details>") == 6
    assert b"color-scheme" in found["assets/own.css"].content


def test_what_does_not_fit_and_options_of_the_other_kind_are_refused(model: Callable[[str], Any]) -> None:
    own = Own()
    runs = (("tokens", lambda: own([3]), ["one"]), ("run", lambda: own([2, 1]), TOKENS), ("run", print, TOKENS))
    for where, run, tokens in runs:
        with refused(UsageError, where):
            own_page(own, run, tokens)
    with refused(UsageError, "run"):
        regard.explore(model("translator"), run=print, tokens=[])  # type: ignore[call-overload]
    with refused(UsageError, "tokens"):
        regard.explore(Own(), run=print)  # type: ignore[call-overload]
    with refused(UsageError, "model"):
        own_page(nn.Linear(2, 2), print, TOKENS)


def test_too_many_tokens_and_weights_without_values_are_refused() -> None:
    own = Own()
    with refused(RegardError, "tokens"):
        own_page(own, lambda: own([65]), ["a"] * 65)
    nn.init.constant_(own.look[0].query.weight, float("nan"))
    with refused(RegardError, "look.0.query.weight"):
        own_page(own, lambda: own([3]), TOKENS)
