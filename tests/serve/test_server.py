"""The server's address, which is the loopback only."""

import os
import socket

import pytest

import regard.serve.server as server
from regard.serve.server import listen, page_url
from regard.system.errors import UsageError
from tests.refusals import refused


def test_the_first_free_port_is_taken(monkeypatch) -> None:
    with listen(0) as free:
        first = free.getsockname()[1]
        monkeypatch.setattr(server, "PORT", first)
        with listen() as found:
            assert first < found.getsockname()[1] < first + server.TRIED
            assert page_url(found) == f"http://127.0.0.1:{found.getsockname()[1]}/"
        monkeypatch.setattr(server, "TRIED", 1)
        with refused(UsageError, "--port", str(first)):
            listen()


def test_a_port_that_is_named_is_the_one_or_none() -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with refused(UsageError, "--port", str(port)):
            listen(port)
    with listen(port) as again:
        assert again.getsockname() == ("127.0.0.1", port)


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_what_is_no_port_is_refused(port: int) -> None:
    with refused(UsageError, "--port"):
        listen(port)


def test_a_port_of_the_system_is_one_sentence(monkeypatch) -> None:
    def refuse(self: socket.socket, where: tuple[str, int]) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with refused(UsageError, "--port", "80"):
        listen(80)


def test_no_other_address_of_this_machine_answers(site) -> None:
    for family, host in ((socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as other:
            other.settimeout(1)
            with pytest.raises(OSError):
                other.connect((host, site.port))
