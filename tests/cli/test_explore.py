"""``regard explore`` as a process: its output, its shutdown, and invalid arguments."""

import http.client
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType

import pytest

command = importlib.import_module("regard.cli.explore")
SERVING = """
import importlib, signal, sys, time, types
from regard.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit that it is ignored
models = types.ModuleType("regard.inspection.folders.models")
answers = types.ModuleType("regard.inspection.questions.answers")
models.Models = lambda folders, images, threads: [str(folders), str(images), threads]
answers.ANSWERS = {"look": None}
answers.state = lambda models: {"models": models}
answers.answer = lambda models, name, asked: time.sleep(60)
def stream_tokens(models, asked):
    while True:
        yield {"piece": "a"}
        time.sleep(0.01)
answers.stream_tokens = stream_tokens
sys.modules |= {"regard.inspection.folders.models": models, "regard.inspection.questions.answers": answers}
from regard.library.serve import files
files.files = lambda folder: {"index.html": files.File("index.html", str(folder).encode())}
importlib.import_module("regard.cli.explore")._import_torch = lambda threads: None
sys.exit(main())
"""


@contextmanager
def running(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A server in a process of its own, its port and the line it says."""
    command = [sys.executable, "-c", SERVING, "explore", str(folder), *words]
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            line = process.stdout.readline()
            yield process, int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1]), line
        finally:
            process.kill()


def client(port: int) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10))


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Code, stdout and stderr after Ctrl-C, which waits for no answer: one of these takes a minute."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_it_says_where_it_is_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    with running(tmp_path, "--port", "0", "--threads", "2") as (process, port, line):
        assert line == f"The page is at http://127.0.0.1:{port}/ (Ctrl-C ends it)\n"
        with client(port) as connection:
            connection.request("GET", "/api/state")
            assert json.loads(connection.getresponse().read()) == {"models": [f"[{tmp_path!r}]", "None", 2]}
            connection.request("GET", "/")
            page = Path(connection.getresponse().read().decode())
            assert page == Path(command.__file__).parents[1] / "inspection" / "page"
            assert ended(process) == (130, "", "")


@pytest.mark.one_of(2, minutes=0.05)
@pytest.mark.parametrize("path", ["/api/write", "/api/look"])
def test_ctrl_c_ends_what_is_written_and_computed(tmp_path: Path, path: str) -> None:
    with running(tmp_path, "--port", "0") as (process, port, _), client(port) as connection:
        connection.request("POST", path, "{}", {"Content-Type": "application/json"})
        if path == "/api/write":
            assert b'"a"' in connection.getresponse().readline()
        else:
            time.sleep(0.2)
        assert ended(process) == (130, "", "")


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path, regard, monkeypatch) -> None:
    from regard.library.serve import files
    from regard.library.serve.server import listen

    monkeypatch.setattr(files, "files", lambda folder: {})
    with listen(0) as taken:
        port = str(taken.getsockname()[1])
        done = regard("explore", tmp_path, "--port", port)
    done.refuses(f"regard: --port: port {port} is taken; name another, or 0 for any that is free\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("absent",), "absent: no such folder"),
        ((".", "absent"), "absent: no such folder"),
        (("circle",), "circle: cannot be opened: Too many levels of symbolic links"),
        (("n" * 300,), "cannot be opened: File name too long"),
        (("a.csv",), "a.csv: is a file"),
        (["."] * (command.MOST + 1), "33 models; a page shows at most 32"),
        ((".", "--threads", "0"), "--threads"),
        ((".", "--images", "absent.csv"), "absent.csv: no such file"),
        ((".", "--host", "0.0.0.0"), "unknown option '--host'"),
        ((".", "--port", "99999"), "there is no port 99999"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(regard, monkeypatch, tmp_path: Path, words, said: str) -> None:
    from regard.library.serve import files

    monkeypatch.setattr(files, "files", lambda folder: {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("1,2\n")
    (tmp_path / "circle").symlink_to("circle")
    regard("explore", *words).refuses(said)


def test_what_computes_is_loaded_ahead_with_its_threads(monkeypatch) -> None:
    threads: list[int] = []
    torch, bundle = ModuleType("torch"), ModuleType("regard.tasks.model_folder")
    torch.set_num_threads = threads.append
    for module in (torch, bundle):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    command._import_torch(3)
    assert threads == [3]


@pytest.mark.parametrize(
    ("display", "fails", "shown"), [({}, False, 0), ({"DISPLAY": ":0"}, False, 1), ({"BROWSER": "x"}, True, 1)]
)
def test_the_browser_is_opened_where_there_is_a_display(monkeypatch, display, fails: bool, shown: int) -> None:
    import threading

    opened, tried = [], threading.Event()

    def show(address: str) -> None:
        opened.append(address)
        tried.set()
        if fails:
            raise OSError("no browser")

    browser = ModuleType("webbrowser")
    browser.open = show
    monkeypatch.setitem(sys.modules, "webbrowser", browser)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in display.items():
        monkeypatch.setenv(name, value)
    command._open_browser("http://127.0.0.1:1/")
    assert tried.wait(5 if shown else 0.05) == bool(shown)
    assert opened == ["http://127.0.0.1:1/"] * shown


STARTING = """
import os, sys
from regard.cli import main
from regard.library.serve import server
def listen(port):
    print("torch" in sys.modules, os.environ["LRU_CACHE_CAPACITY"], os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"])
    sys.exit(0)
server.listen = listen
main(["explore", "."])
"""


@pytest.mark.long(minutes=0.04)
@pytest.mark.parametrize(("more", "said"), [({}, "False 16 32"), ({"LRU_CACHE_CAPACITY": "100"}, "False 100 32")])
def test_few_products_stay_prepared_unless_the_user_says_otherwise(
    tmp_path: Path, more: dict[str, str], said: str
) -> None:
    """torch reads how many as it loads; with a thousand the server takes a gigabyte."""
    mine = {name: value for name, value in os.environ.items() if "CACHE_CAPACITY" not in name}
    words = [sys.executable, "-c", STARTING]
    done = subprocess.run(words, cwd=tmp_path, env={**mine, **more}, capture_output=True, text=True)
    assert done.stdout.strip() == said, done.stderr
