"""How much memory the attention page's server takes under 32 clients, minute by minute.

    python benchmarks/page_memory.py --model demo/model --texts demo/corpus/test.en

Each client asks, one question after another, what the page asks of a pass, in random order and of texts that nobody
asked of before: words of two lines, of 1 to 40 words. One line is appended to ``results/page_memory.jsonl``, or to
``--results FILE``.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import Any

import command
import machine

CLIENTS = 32
QUESTIONS: dict[str, dict[str, Any]] = {
    "look": {"opening": "cross"},
    "head": {"kind": "cross", "layer": 1, "head": 1},
    "row": {"kind": "encoder", "places": [0]},
    "equation": {"kind": "decoder"},
    "layers": {"stack": "encoder"},
    "owes": {"place": 0},
    "needs": {"places": [0]},
    "tree": {},
    "write": {},
    "export": {"form": "html"},
}
"""Endpoints, and what is asked beside model and text."""


def main() -> None:
    """Serve, ask, look at the memory, append."""
    parser = command.parser(__doc__, "page_memory")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--minutes", type=int, default=20)
    asked = parser.parse_args()
    begun = machine.begun("page_memory", clients=CLIENTS)
    words = [sys.executable, "-m", "regard.cli", "explore", str(asked.model), "--port", "0", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(re.findall(r":(\d+)/", server.stdout.readline())[0])
            rows = measured(server.pid, port, asked.texts.read_text(encoding="utf-8").splitlines(), asked.minutes)
        finally:
            server.kill()
    machine.append(asked.results, begun, rows)


def measured(server: int, port: int, lines: list[str], minutes: int) -> list[dict[str, Any]]:
    """Memory and answers after each minute."""
    ended, said = Event(), Counter[int]()
    clients = [Thread(target=client, args=(port, lines, seed, ended, said)) for seed in range(CLIENTS)]
    ask(http.client.HTTPConnection("127.0.0.1", port), "look", lines[0])  # the model is loaded then
    rows = []
    for each in clients:
        each.start()
    for minute in range(minutes + 1):
        for _ in range(60 if minute else 0):  # so that time in which all of it is stopped does not count
            time.sleep(1)
        megabytes = round(machine.resident("VmRSS", server), 1)
        row = {"minute": minute, "megabytes": megabytes}
        rows.append(row | {"answers": said[200], "other": said.total() - said[200]})
    ended.set()
    for each in clients:
        each.join()
    return rows


def client(port: int, lines: list[str], seed: int, ended: Event, said: Counter[int]) -> None:
    """Ask until the end; who is told to ask again in a moment does."""
    drawn, connection = random.Random(seed), http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    while not ended.is_set():
        words = f"{drawn.choice(lines)} {drawn.choice(lines)}".split()
        text = " ".join(drawn.choices(words, k=drawn.randint(1, 40)))
        try:
            status = ask(connection, drawn.choice(list(QUESTIONS)), text)
        except (OSError, http.client.HTTPException):  # the server closed an idle connection: the next one is a new one
            connection.close()
            continue
        said[status] += 1
        if status == 503:
            ended.wait(1)


def ask(connection: http.client.HTTPConnection, name: str, text: str) -> int:
    """The status of an answer, which is read whole."""
    given = json.dumps({"model": 0, "text": text, **QUESTIONS[name]})
    connection.request("POST", f"/api/{name}", given, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


if __name__ == "__main__":
    command.run(main)
