"""``regard explore``: the attention page, served to the browser of this machine."""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.opening import check_threads, refuse_no_file
from regard.errors import UsageError

MOST = 32
"""Models on one page."""


def explore(
    folders: Annotated[list[Path], Parameter(name="MODEL...")],
    /,
    *,
    port: int | None = None,
    no_browser: bool = False,
    images: Path | None = None,
    threads: int = 1,
) -> int:
    """Look into models, or a training while it runs, on a page in the browser.

    The page is served to this machine alone, at the address that is printed, until Ctrl-C. From another machine it is
    seen through a forwarded port of the same number: ssh -L 8017:127.0.0.1:8017 MACHINE.

    Args:
        folders: one to 32 model folders, or output folders of trainings that still run.
        port: where the page is; 0: any that is free; default: 8017, or the first free one after it.
        no_browser: do not open the page; without a display it is not opened anyway.
        images: a file of images to look at, for models of images: CSV, TSV or .npz, labelled or not.
        threads: processor threads.
    """
    _refuse(folders, threads, images)
    from regard import explore as exploring
    from regard.cli.terminal import result
    from regard.explore import answers
    from regard.explore.models import Models
    from regard.serve.page import files
    from regard.serve.server import Server, address, listening

    page = files(Path(exploring.__file__).parent / "page")
    with listening(port) as listener:
        server = Server(Models(folders, images, threads), answers, page, lambda: _begin(threads))
        result(f"The page is at {address(listener)} (Ctrl-C ends it)")
        sys.stdout.flush()
        if not no_browser:
            _show(address(listener))
        try:
            server.run([listener])
        except KeyboardInterrupt:
            _leave()
    return 0


def _refuse(folders: list[Path], threads: int, images: Path | None) -> None:
    """Raise a UsageError for what cannot be shown."""
    check_threads(threads)
    if len(folders) > MOST:
        raise UsageError(f"these are {len(folders)} models; a page shows at most {MOST}")
    for folder in folders:
        try:
            found = folder.stat()
        except FileNotFoundError:
            raise UsageError("no such folder", str(folder)) from None
        except OSError as error:
            raise UsageError(f"cannot be opened: {error.strerror}", str(folder)) from None
        if not stat.S_ISDIR(found.st_mode):
            raise UsageError("is a file; a model folder is needed", str(folder))
    if images is not None:
        refuse_no_file(images)


def _begin(threads: int) -> None:
    """Load what computes: torch takes a second or two, which the page does not wait for."""
    import torch

    torch.set_num_threads(threads)  # in the thread that computes, which alone has this number
    importlib.import_module("regard.tasks.bundle")


def _show(address: str) -> None:
    """Open the browser, unless there is nothing to show it on; whether it opens is not our affair."""
    if not (sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & os.environ.keys()):
        return
    import threading
    import webbrowser

    def show() -> None:
        with contextlib.suppress(Exception):
            webbrowser.open(address)

    threading.Thread(target=show, daemon=True).start()


def _leave() -> None:
    """End at once: what torch computes cannot be stopped, and to take it down in good order may take a second."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)
