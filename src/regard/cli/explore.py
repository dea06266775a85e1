"""``regard explore``: starts the attention page's server and opens the browser."""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.io.load_model import check_threads, refuse_no_file
from regard.cli.io.terminal import result, say
from regard.system.errors import UsageError
from regard.system.installation import require
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.inspection.folders.models import Models

MOST = 32
"""Most models on one page."""
FEW = {"LRU_CACHE_CAPACITY": "16", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32"}
"""Products that torch and oneDNN keep prepared; by default 1,024 each, one for every length of a text.

With 1,024 the page's server takes a gigabyte after some thousand texts, and answers no faster.
"""


def explore(
    folders: Annotated[list[Path] | None, Parameter(name="MODEL...")] = None,
    /,
    *,
    port: int | None = None,
    no_browser: bool = False,
    images: Path | None = None,
    save: Path | None = None,
    threads: int = 1,
) -> None:
    """Look into models, or a training while it runs, on a page in the browser.

    Without a model it shows two small ones that come with Regard: a Transformer, and its recurrent sister. The page is
    served to this machine alone, at the address that is printed, until Ctrl-C. From another machine it is seen through
    a forwarded port of the same number: ssh -L 8017:127.0.0.1:8017 MACHINE.

    Args:
        folders: up to 32 model folders, or output folders of trainings that still run.
        port: where the page is; 0: any that is free; default: 8017, or the first free one after it.
        no_browser: do not open the page; without a display it is not opened anyway.
        images: a file of images to look at, for models of images: CSV, TSV or .npz, labelled or not.
        save: a folder for the page as a static site with answers to prepared sentences, which any web server can host.
        threads: processor threads.
    """
    check_threads(threads)
    folders = folders or []
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
    require("torch", "starlette", "uvicorn")
    folders = _with_shipped(folders)
    for name, value in FEW.items():  # read when torch loads
        os.environ.setdefault(name, value)
    from regard.inspection import PAGE
    from regard.inspection.folders.models import Models
    from regard.library.serve.app import Site
    from regard.library.serve.files import files
    from regard.library.serve.server import Server, listen, page_url

    if save is not None:
        _save(Models(folders, images, threads), save, threads)
        return
    page = files(PAGE)
    with listen(port) as listener:
        server = Server(Site(Models(folders, images, threads), page), lambda: _import_torch(threads))
        result(f"The page is at {page_url(listener)} (Ctrl-C ends it)")
        sys.stdout.flush()
        if not no_browser:
            _open_browser(page_url(listener))
        try:
            server.run([listener])
        except KeyboardInterrupt:  # an orderly shutdown may take a second, and a running computation cannot be stopped
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)


def _with_shipped(folders: list[Path]) -> list[Path]:
    """The models that come with Regard where none is named; behind a training without weights the first of them."""
    from regard.inspection import SHIPPED
    from regard.tasks.model_path import MODEL, is_model_folder, model_folder

    if not folders:
        return list(SHIPPED)
    begun = [one for one in folders if is_model_folder(path := model_folder(one)) and not (path / MODEL).exists()]
    return [*folders, SHIPPED[0]] if begun else folders


def _save(models: Models, folder: Path, threads: int) -> None:
    """Write the page as a static site."""
    from regard.library.serve.static_site import save_site

    _import_torch(threads)
    count = save_site(models, folder, say)
    result(f"wrote {folder} with {counted(count, 'answer')}; try it with: python -m http.server --directory {folder}")


def _import_torch(threads: int) -> None:
    """Import torch on the worker thread; this takes a second or two, and the page does not wait for it."""
    import torch

    torch.set_num_threads(threads)  # set on the worker thread, because the number applies to that thread only
    importlib.import_module("regard.tasks.model_folder")


def _open_browser(address: str) -> None:
    """Open the browser if there is a display; failures are ignored."""
    if not (sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & os.environ.keys()):
        return
    import threading
    import webbrowser

    def show() -> None:
        with contextlib.suppress(Exception):
            webbrowser.open(address)

    threading.Thread(target=show, daemon=True).start()
