"""A server beside `regard translate`, LibreTranslate and CTranslate2: texts a second, and one sentence's time.

    python benchmarks/serving.py --model FOLDER --texts test.en

Throughput: 16 clients, each with a connection that it keeps, send the lines of the file three times, in requests of 1
to N texts for each N of ``--most``, the next one when the last is answered; beside it the same lines as a file for
`regard translate`, as lines and as a document (whose sentences are found and whose numbers are kept, as a server does
it), less the seconds that it takes for one. The same clients ask `peers/serve_ctranslate2.py`,
which translates the sentences of all clients in batches of the size that was best of some tried before; and
LibreTranslate of the same weights (its environment is made below ``--work``) for a tenth of the lines: as it is
installed, with four threads for requests and its own length penalty, and with a worker for each core. All run in turns,
and their medians count. All programs, and the clients, share the cores of the machine; `cpu` is the processor time of a
program without the clients.

Latency: milliseconds of one short sentence, asked again and again; alone, beside a document of 5,000 sentences (a job),
and beside the same sentences as requests.

Company: 5,000 requests of 1 to 4 lines, drawn at random, from 16 clients, and a document meanwhile; how many of the
translations are those of the line when it is asked for alone.

One line is appended to ``results/serving.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import re
import subprocess
import sys
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import chain, product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import command
import machine
from environments import Absent, prepared, python_for
from harness import say

from regard.tasks.model_folder import open_without_torch

CLIENTS = 16
MOST = (1, 16, 64)
"""Texts of a request at most."""
OVER = 3
"""Times that the lines are translated, since batches are small at the end."""
BATCHES = (16, 32, 64)
"""Sentences of a batch of CTranslate2, tried."""
BOOK = 5_000
"""Sentences."""
SHORT = "A man sleeps on a bench."
TIMES = 200
"""The short sentence is asked for."""
REQUESTS = 5_000
"""In random company."""
PAUSE = 0.02
"""Seconds between two of them."""
Row = dict[str, Any]


def main() -> None:
    """Start everything, measure in turns, append."""
    parser = command.parser(__doc__, "serving")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--precision", choices=["fp32", "int8"], default="fp32")
    parser.add_argument("--rounds", type=command.positive_number, default=5)
    parser.add_argument("--most", type=command.positive_number, nargs="+", default=MOST)
    parser.add_argument("--work", type=prepared, default=str(command.WORK))
    parts = ["throughput", "latency", "company"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    asked = parser.parse_args()
    session = machine.begun("serving", clients=CLIENTS, precision=asked.precision)
    lines = asked.texts.read_text(encoding="utf-8").splitlines()
    rows = []
    with TemporaryDirectory() as scratch, ExitStack() as stack:
        data = ["--data", f"{scratch}/data", "--port", "0", "--precision", asked.precision]
        ours = stack.enter_context(Server([*REGARD, "serve", str(asked.model), *data]))
        if "throughput" in asked.parts:
            rows += throughputs(ours, lines * OVER, asked, scratch, stack)
        if "latency" in asked.parts:
            rows += latencies(ours, lines, asked.rounds)
        if "company" in asked.parts:
            rows.append(company(ours, lines))
    machine.append(asked.results, session, rows)


OFFLINE, AS = "regard translate", ((), ("--format", "text"))
REGARD = [sys.executable, "-m", "regard.cli"]


class Server:
    """A program that says on its first line where it listens."""

    def __init__(self, words: Sequence[str], **settings: str) -> None:
        environment = os.environ | settings
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)

    def __enter__(self) -> Server:
        assert self.process.stdout is not None
        address = re.search(rb":(\d+)/", self.process.stdout.readline())
        assert address, f"{self.process.args} ended without an address"
        self.port = int(address[1])
        self.answer(self.connect(), [SHORT])  # the model is in memory then
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def processes(self) -> list[Path]:
        """What the system says of each of its processes."""
        own = Path("/proc", str(self.process.pid))
        children = " ".join(path.read_text() for path in own.glob("task/*/children"))
        return [own, *(Path("/proc", one) for one in children.split())]

    @property
    def cpu(self) -> float:
        """Seconds of the processor so far."""
        fields = [(one / "stat").read_text().rpartition(")")[2].split() for one in self.processes]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self) -> float:
        """Memory of its processes; what both have mapped counts twice."""
        return sum(machine.resident("VmRSS", int(one.name)) for one in self.processes)

    def connect(self) -> http.client.HTTPConnection:
        """A connection, which is kept."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def answer(self, connection: http.client.HTTPConnection, texts: Sequence[str]) -> list[str]:
        """The translations of one request's texts."""
        return ask(connection, texts)

    def measure(self, lines: Sequence[str], most: int) -> Row:
        """Seconds of the clock and of the processor for a line, where clients ask for up to ``most`` at once."""
        cpu, wall = self.cpu, time.perf_counter()
        self.ask(divide(lines, most))
        return {"wall": (time.perf_counter() - wall) / len(lines), "cpu": (self.cpu - cpu) / len(lines)}

    def ask(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """The answers of requests of so many texts, asked for by all clients."""
        requests, places = iter(enumerate(texts)), list[tuple[int, list[str]]]()

        def run() -> None:
            connection = self.connect()
            for place, some in requests:
                places.append((place, self.answer(connection, some)))
            connection.close()

        clients = [Thread(target=run) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        return [texts for _, texts in sorted(places)]


class LibreTranslate(Server):
    """The program of that name, which is asked in its own way; it is slow, so a tenth of the lines is enough."""

    def answer(self, connection: http.client.HTTPConnection, texts: Sequence[str]) -> list[str]:
        given = json.dumps({"q": texts, "source": "en", "target": "de"}).encode()
        found = told(connection, "POST", "/translate", given, {"Content-Type": "application/json"})
        return list(found["translatedText"])

    def measure(self, lines: Sequence[str], most: int) -> Row:
        return super().measure(lines[: max(len(lines) // 10, CLIENTS * most // 2)], most)


class Offline:
    """`regard translate` of a file of lines, or of paragraphs of a document, in a process of its own."""

    def __init__(self, model: Path, precision: str, folder: str, *options: str) -> None:
        self._words = [*REGARD, "translate", str(model), "--precision", precision, *options]
        self._end = "\n\n" if options else "\n"
        self._source, self._target = Path(folder, "source"), Path(folder, "target")

    def measure(self, lines: Sequence[str], most: int) -> Row:
        """The same of one process, without its start; it has all lines at once."""
        one, every = self._run([SHORT]), self._run(lines)
        return {name: (every[name] - one[name]) / len(lines) for name in one}

    def _run(self, lines: Sequence[str]) -> Row:
        self._source.write_text("".join(line + self._end for line in lines), encoding="utf-8")
        cpu, wall = os.times(), time.perf_counter()
        files = ["--input", str(self._source), "--output", str(self._target)]
        subprocess.run([*self._words, *files], check=True, capture_output=True)
        now = os.times()
        used = now.children_user + now.children_system - cpu.children_user - cpu.children_system
        return {"wall": time.perf_counter() - wall, "cpu": used}


def divide(lines: Sequence[str], most: int) -> list[list[str]]:
    """The lines as requests of 1 to so many."""
    drawn, at, found = random.Random(1), 0, list[list[str]]()
    while at < len(lines):
        found.append(list(lines[at : at + drawn.randint(1, most)]))
        at += len(found[-1])
    return found


def ask(connection: http.client.HTTPConnection, texts: Sequence[str]) -> list[str]:
    """The translations of one request's texts; who is told to ask again in some seconds does."""
    given = json.dumps({"texts": texts, "source": "en", "target": "de"}).encode()
    status = 429
    while status == 429:
        connection.request("POST", "/v1/translate", given, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content, status = answer.read(), answer.status
        if status == 429:
            time.sleep(int(answer.headers["Retry-After"]))
    assert status == 200, content
    return [one["text"] for one in json.loads(content)["translations"]]


def throughputs(ours: Server, lines: list[str], asked: Namespace, scratch: str, stack: ExitStack) -> list[Row]:
    """Texts a second of each program."""
    beam = str(open_without_torch(asked.model, "cpu", "fp32").recipe.decoding.beam)
    folder, theirs = f"{scratch}/ctranslate2", command.HERE / "peers"
    export = [*REGARD, "export", str(asked.model), folder, "--to", "ctranslate2"]
    subprocess.run(export, check=True, capture_output=True)
    given = [folder, asked.precision.replace("fp32", "float32"), beam]
    peer = [sys.executable, str(theirs / "serve_ctranslate2.py"), *given]
    peers = {batch: stack.enter_context(Server([*peer, str(batch)])) for batch in BATCHES}
    seconds = {batch: peers[batch].measure(lines, max(asked.most))["wall"] for batch in BATCHES}
    best = min(seconds, key=seconds.__getitem__)
    programs: dict[str, Server | Offline] = {
        "regard serve": ours,
        **{" ".join([OFFLINE, *some]): Offline(asked.model, asked.precision, scratch, *some) for some in AS},
        f"CTranslate2, batches of {best}": peers[best],
    }
    try:
        words = [str(python_for("libretranslate", asked.work)), str(theirs / "serve_libretranslate.py")]
    except Absent as reason:
        say(f"  LibreTranslate is absent: {reason}")
    else:
        each = {"ARGOS_INTER_THREADS": str(os.cpu_count()), "ARGOS_INTRA_THREADS": "1"}
        for name, settings in (("", {}), (", a worker for each core", each)):
            server = LibreTranslate([*words, *given], **settings)
            programs[f"LibreTranslate{name}"] = stack.enter_context(server)
    runs: dict[tuple[str, int], list[Row]] = defaultdict(list)
    once = [len(lines)]
    pairs = [(name, most) for name in programs for most in (once if name.startswith(OFFLINE) else asked.most)]
    for turn, (name, most) in product(range(asked.rounds), pairs):
        runs[name, most].append(programs[name].measure(lines, most))
        each_second = 1 / runs[name, most][-1]["wall"]
        say(f"  {turn + 1}/{asked.rounds} {name}, up to {most} texts at once: {each_second:.0f} texts a second")
    return [
        {
            "what": "throughput",
            "tool": name,
            "most": most,
            "texts_per_second": round(1 / median(one["wall"] for one in found), 1),
            "cpu_of_1000": round(1000 * median(one["cpu"] for one in found), 2),
            "runs": [{key: round(1000 * value, 3) for key, value in one.items()} for one in found],
        }
        for (name, most), found in runs.items()
    ]


def latencies(server: Server, lines: list[str], rounds: int) -> list[Row]:
    """Milliseconds of a short sentence in each company."""
    book = [lines[place % len(lines)] for place in range(BOOK)]
    others: dict[str, Callable[[], Any]] = {
        "alone": nullcontext,
        "a document": partial(document, server, book),
        "requests": partial(requests, server, book),
    }
    runs: dict[str, list[float]] = {name: [] for name in others}
    for turn in range(rounds):
        for name, beside in others.items():
            with beside():
                found = times(server)
            runs[name] += found
            say(f"  {turn + 1}/{rounds} {name}: median {median(found):.1f} ms, p95 {quantile(found, 0.95):.1f} ms")
    return [
        {
            "what": "latency",
            "beside": name,
            "p50_ms": round(median(found), 1),
            "p95_ms": round(quantile(found, 0.95), 1),
            "most_ms": round(max(found), 1),
            "requests": len(found),
        }
        for name, found in runs.items()
    ]


def company(server: Server, lines: list[str]) -> Row:
    """How many translations of random requests are those of the line alone."""
    connection, drawn = server.connect(), random.Random(2)
    alone = {line: ask(connection, [line]) for line in dict.fromkeys(lines)}
    texts = [drawn.choices(lines, k=drawn.randint(1, 4)) for _ in range(REQUESTS)]
    with document(server, lines * 20, whole=False):
        found = server.ask(texts)
    pairs = zip(chain.from_iterable(texts), chain.from_iterable(found), strict=True)
    same = sum([text] == alone[line] for line, text in pairs)
    return {"what": "company", "requests": len(texts), "texts": sum(map(len, texts)), "same": same}


def times(server: Server) -> list[float]:
    """Milliseconds of the short sentence, again and again."""
    connection, found = server.connect(), []
    for _ in range(TIMES):
        begun = time.perf_counter()
        ask(connection, [SHORT])
        found.append((time.perf_counter() - begun) * 1000)
        time.sleep(PAUSE)
    connection.close()
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """The least value of which so large a share is no larger."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


@contextmanager
def document(server: Server, lines: Sequence[str], whole: bool = True) -> Iterator[None]:
    """Meanwhile lines are translated as a document; it is deleted then.

    Raises:
        AssertionError: it was done before, though it should take the ``whole`` time.
    """
    query = "/v1/documents?source=en&target=de"
    form = [
        b"--book",
        b'Content-Disposition: form-data; name="file"; filename="book.txt"\r\n',
        "\n\n".join(lines).encode(),
        b"--book--\r\n",
    ]
    headers = {"Content-Type": "multipart/form-data; boundary=book"}
    job = told(server.connect(), "POST", query, b"\r\n".join(form), headers)
    own, secret = f"/v1/documents/{job['id']}", {"Document-Secret": job["secret"]}
    try:
        yield
        assert not whole or told(server.connect(), "GET", own, headers=secret)["status"] == "translating"
    finally:
        told(server.connect(), "DELETE", own, headers=secret)


@contextmanager
def requests(server: Server, lines: Sequence[str]) -> Iterator[None]:
    """Meanwhile lines are asked for, as many at once as a request may have, from the first on when all were."""
    ended, size = Event(), 1_000

    def run() -> None:
        connection = server.connect()
        while not ended.is_set():
            for at in range(0, len(lines), size):
                if not ended.is_set():
                    ask(connection, lines[at : at + size])
        connection.close()

    client = Thread(target=run)
    client.start()
    try:
        yield
    finally:
        ended.set()
        client.join()


def told(connection: http.client.HTTPConnection, method: str, path: str, body: bytes = b"", headers: Any = None) -> Any:
    """What an answer says, if it says something."""
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status < 300, content
    return json.loads(content) if content else None


if __name__ == "__main__":
    command.run(main)
