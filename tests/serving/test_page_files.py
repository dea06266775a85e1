"""What a browser loads for the page for people."""

from __future__ import annotations

import gzip
import re

from tests.serving.answers import KINDS, PAGE

MOST = 150_000
"""Bytes of the first view."""


def test_the_first_view_is_small() -> None:
    """With its fonts, as it is sent."""
    files = [file for file in PAGE.rglob("*") if file.suffix in KINDS or file.suffix == ".woff2"]
    sent = [file.read_bytes() if file.suffix == ".woff2" else gzip.compress(file.read_bytes()) for file in files]
    assert 50_000 < sum(map(len, sent)) < MOST


def test_nothing_that_the_policy_forbids() -> None:
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|https?:", page)
