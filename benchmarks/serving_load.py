"""A server under more than it can do, and under clients that leave: what is lost or late, and what stays in memory.

    python benchmarks/serving_load.py --model FOLDER --texts test.en --minutes 10

First 64 clients ask without a pause, for up to 1,000 texts at once, several times what a server lets wait; who is told
429 asks again when it may. Then 10,000 clients come, at most 200 at once: a quarter each sends nothing, sends half a
request, reads no answer, or leaves while it is translated; afterwards the server's gauges, threads and open files are
looked at. One line is appended to ``results/serving_load.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import linear_regression
from tempfile import TemporaryDirectory
from threading import Thread

import command
import machine
from harness import say
from serving import REGARD, Row, Server, quantile

CLIENTS = 64
MOST = 1_000
"""Texts of a request at most."""
LEAVERS, AT_ONCE = 10_000, 200
LOOK = 5.0
"""Seconds between two looks at memory."""
LATE = 61.0
"""Seconds after which an answer is late: a call may take 60."""
Answer = tuple[int, int, float]
GAUGE = re.compile(r"^regard_((?:calls|characters|sentences)_(?:running|waiting)) (\S+)$", re.MULTILINE)


def main() -> None:
    """Serve, ask, leave, look, append."""
    parser = command.parser(__doc__, "serving_load")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=command.whole_number, default=LEAVERS, help="that leave")
    asked = parser.parse_args()
    session = machine.begun("serving_load", clients=CLIENTS)
    lines = asked.texts.read_text(encoding="utf-8").splitlines()
    words = [*REGARD, "serve", str(asked.model), "--port", "0"]
    with TemporaryDirectory() as scratch, Server([*words, "--data", scratch]) as server:
        rows = [overload(server, lines, asked.minutes * 60), leave(server, lines, asked.clients)]
    machine.append(asked.results, session, rows)


def overload(server: Server, lines: Sequence[str], seconds: float) -> Row:
    """What became of the requests of 64 clients, and of memory."""
    until, answers = time.monotonic() + seconds, list[Answer]()
    clients = [Thread(target=client, args=(server, lines, seed, until, answers)) for seed in range(CLIENTS)]
    for one in clients:
        one.start()
    memory = list[tuple[float, float]]()
    while (now := time.monotonic()) < until:
        memory.append((now / 60, server.megabytes))
        time.sleep(min(LOOK, max(until - now, 0)))
    for one in clients:
        one.join()
    done = [(size, took) for status, size, took in answers if status == 200]
    settled = memory[len(memory) // 4 :]
    return {
        "what": "overload",
        "minutes": round(seconds / 60, 1),
        "answered": len(done),
        "texts_per_second": round(sum(size for size, _ in done) / seconds, 1),
        "refused": sum(status == 429 for status, _, _ in answers),
        "other": dict(Counter(str(status) for status, _, _ in answers if status not in (200, 429))),
        "late": sum(took > LATE for _, took in done),
        "p50_s": round(quantile([took for _, took in done], 0.5), 2),
        "p95_s": round(quantile([took for _, took in done], 0.95), 2),
        "megabytes": round(memory[-1][1], 1),
        "curve": [round(megabytes) for _, megabytes in memory],
        "megabytes_a_minute": round(linear_regression(*zip(*settled, strict=True)).slope, 2),
    }


def client(
    server: Server, lines: Sequence[str], seed: int, until: float, answers: list[tuple[int, int, float]]
) -> None:
    """Ask until the end; note each status (0: none came, or too few translations), texts and seconds."""
    drawn, connection = random.Random(seed), server.connect()
    while time.monotonic() < until:
        texts = drawn.choices(lines, k=drawn.randint(1, MOST))
        begun, status, after = time.monotonic(), 0, 0
        with suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/v1/translate", request_of(texts), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = json.loads(answer.read())
            status, after = answer.status, int(answer.headers.get("Retry-After", "0"))
            if status == 200 and len(content["translations"]) != len(texts):
                status = 0
        answers.append((status, len(texts), time.monotonic() - begun))
        if status != 200:
            connection.close()
            time.sleep(min(after, max(until - time.monotonic(), 0)))
    connection.close()


def request_of(texts: Sequence[str]) -> bytes:
    """A request's body."""
    return json.dumps({"texts": texts, "source": "en", "target": "de"}).encode()


def leave(server: Server, lines: Sequence[str], clients: int) -> Row:
    """What the server has before, and after the clients have left."""
    asyncio.run(leavers(server.port, lines, AT_ONCE))  # threads that are kept from now on
    before = settled(server)
    begun = time.monotonic()
    asyncio.run(leavers(server.port, lines, clients))
    say(f"  {clients} clients have left in {time.monotonic() - begun:.0f} s")
    return {"what": "leave", "clients": clients, "before": before, "after": settled(server)}


async def leavers(port: int, lines: Sequence[str], clients: int) -> None:
    """Clients that come and leave."""
    drawn, room = random.Random(clients), asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with room:
            with suppress(OSError):
                await come(port, drawn.choices(lines, k=8), number % 4, drawn.random() * 0.2)

    await asyncio.gather(*map(one, range(clients)))


async def come(port: int, texts: Sequence[str], kind: int, seconds: float) -> None:
    """Connect; then send nothing, half a request, or a request of which nothing is read; leave.

    Args:
        port: of the server.
        texts: that are asked for.
        kind: 0: nothing is sent, 1: half, 2: a request whose answer is there and not read, 3: it is not there yet.
        seconds: after which the client leaves.
    """
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    body = request_of(texts)
    head = f"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    sent = f"{head}Content-Type: application/json\r\n\r\n".encode() + body
    writer.write({0: b"", 1: sent[: len(sent) // 2]}.get(kind, sent))
    await writer.drain()
    await asyncio.sleep(seconds * (5 if kind == 2 else 1))
    writer.transport.abort()


def settled(server: Server, seconds: float = 90) -> Row:
    """Gauges, threads and open files, once the gauges are zero, or after so long."""
    process, until = Path(f"/proc/{server.process.pid}"), time.monotonic() + seconds
    while True:
        connection = server.connect()
        connection.request("GET", "/metrics")
        gauges = {name: float(value) for name, value in GAUGE.findall(connection.getresponse().read().decode())}
        connection.close()
        assert len(gauges) == 4, gauges
        if not any(gauges.values()) or time.monotonic() > until:
            break
        time.sleep(0.5)
    time.sleep(1)
    counts = {name: len(list((process / folder).iterdir())) for name, folder in (("threads", "task"), ("files", "fd"))}
    return {**gauges, **counts, "megabytes": round(server.megabytes, 1)}


if __name__ == "__main__":
    sys.setswitchinterval(0.1)
    command.run(main)
