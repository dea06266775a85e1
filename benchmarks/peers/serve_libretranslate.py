"""LibreTranslate itself with a model exported to CTranslate2, between English and German.

    python serve_libretranslate.py FOLDER KIND BEAM

Its packages hold SentencePiece models and models of where sentences end; here the export's own tokenizer splits texts,
and each text is one sentence, which is a little less work. Prints its address once it listens.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any

PACKAGE = {"package_version": "1.0", "argos_version": "1.0", "type": "translate"}


def write_package(folder: Path, model: Path, source: str, target: str) -> None:
    """An installed package; LibreTranslate asks the network for more where there is only one."""
    folder.mkdir(parents=True)
    (folder / "model").symlink_to(model)
    (folder / "sentencepiece.model").touch()
    languages = {"from_code": source, "from_name": source, "to_code": target, "to_name": target}
    (folder / "metadata.json").write_text(json.dumps(PACKAGE | languages))


def replace_tokenizer(model: Path) -> None:
    """The export's own, and no models of sentences."""
    from argostranslate import package, sbd
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(model / "tokenizer.json"))
    pieces, sentences = package.SentencePieceTokenizer, sbd.MiniSBDSentencizer
    pieces.encode = lambda _, text: tokenizer.encode(text).tokens
    pieces.decode = lambda _, found: tokenizer.decode([tokenizer.token_to_id(one) for one in found]).strip()
    sentences.__init__ = lambda _, package: None
    sentences.split_sentences = lambda _, text: [text]


def tell(port: int, out: int) -> None:
    """Print the address once somebody listens there."""
    while True:
        with socket.socket() as client:
            if not client.connect_ex(("127.0.0.1", port)):
                break
        time.sleep(0.1)
    os.write(out, f"http://127.0.0.1:{port}/\n".encode())


def main() -> None:
    """Serve until killed."""
    model, kind, beam = Path(sys.argv[1]).resolve(), *sys.argv[2:]
    home = mkdtemp(dir=model.parent)
    for pair in (("en", "de"), ("de", "en")):
        write_package(Path(home, "packages", "-".join(pair)), model, *pair)
    os.environ |= dict.fromkeys(("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), home)
    os.environ |= {"ARGOS_PACKAGES_DIR": f"{home}/packages", "ARGOS_BEAM_SIZE": beam}
    os.environ |= {"ARGOS_COMPUTE_TYPE": kind}
    os.chdir(home)
    replace_tokenizer(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    Thread(target=tell, args=(port, os.dup(1)), daemon=True).start()
    os.dup2(2, 1)  # what it prints itself is no address
    from libretranslate.main import main as serve

    sys.argv = ["libretranslate", "--port", str(port), "--disable-web-ui", "--disable-files-translation"]
    serve()


if __name__ == "__main__":
    main()
