"""``regard serve``: what it refuses before it serves, and what it says of its models."""

import shutil
import socket
from pathlib import Path

import pytest

from regard.inspection import SHIPPED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--idle", "nan"), "--idle: expected 0 or more"),
        (("--seconds", "0"), "--seconds: expected more than 0"),
        (("--document-mebibytes", "33"), "--document-mebibytes: expected 1 to 32"),
        (("--port", "65536"), "--port: there is no port 65536"),
        (("--host", "192.0.2.1"), "--host: this machine has no address '192.0.2.1'"),
        (("--host", "a" * 70), "--host: this machine has no address 'aaa"),
        (("--name", "a:80"), "--name: expected a name without a port, such as translate.example.org, not 'a:80'"),
        (("--origin", "evil"), "--origin: expected an address without a path"),
        (("--origin", "https://wiki.example/page"), "--origin: expected an address without a path"),
        (("--attention", "javascript:alert(1)"), "--attention: expected an address, http://"),
        (("--host", "0.0.0.0"), "--host: at 0.0.0.0 clients need a key, and there is none"),
    ],
)
def test_options_that_do_not_fit_are_refused(regard, tmp_path: Path, options, said: str) -> None:
    run = regard("serve", f"en:de={SHIPPED[0]}", *options, "--check", "--data", tmp_path)
    assert run.code == 2
    assert said in run.err


def test_models_are_opened_and_those_that_cannot_be_are_named(regard, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(SHIPPED[0], damaged)
    weights = max(damaged.rglob("*.safetensors"), key=lambda one: one.stat().st_size)
    content = bytearray(weights.read_bytes())
    content[-100] ^= 1
    weights.write_bytes(content)
    run = regard("serve", f"en:de={damaged}", f"de:en={SHIPPED[0]}", "--check", "--data", tmp_path / "data")
    assert run.code == 1
    assert "transformer: a translator, " in run.out
    assert "1 direction; de → en: 1 → " in run.out
    assert "the model damaged cannot be opened: " in run.err
    assert "1 of 2 models cannot be served" in run.err


def test_a_port_that_is_taken_is_said(regard, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = regard("serve", f"en:de={SHIPPED[0]}", "--port", taken.getsockname()[1], "--data", tmp_path)
    assert run.code == 2
    assert "--port: cannot listen at 127.0.0.1" in run.err
