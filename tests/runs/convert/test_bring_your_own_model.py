"""The commands of the page "Bring your own model", as written, on small folders of every kind."""

import re
import shlex
from pathlib import Path

import pytest
import torch

from regard.cli import main
from tests.runs.convert import ctranslate2_folders, marian_folders, small_folders
from tests.runs.convert import translator_folders as hub
from tests.runs.convert.test_argos import pack, package_parts

PAGE = Path(__file__).parents[3] / "docs" / "bring-your-own-model.md"
COMMANDS = re.findall(r"^regard (.+?)(?: +#.*)?$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>'


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the page's reader has."""
    home = tmp_path_factory.mktemp("home")
    for name in ("opus-mt-en-de", "nllb-200", "opus-release", "firefox-ende"):
        (home / name).mkdir()
    peer = hub.write("marian", home / "opus-mt-en-de")
    peer.final_logits_bias[0, peer.config.eos_token_id] += 6.0  # with made-up weights it would write on and on
    torch.save(peer.state_dict(), home / "opus-mt-en-de" / "pytorch_model.bin")
    hub.write("nllb", home / "nllb-200")
    marian_folders.write("opus", home / "opus-release")
    marian_folders.write("student", home / "firefox-ende")
    ctranslate2_folders.write(home / "ct2-folder")
    small_folders.folder_of("BertModel", home / "minilm")
    pack(home / "translate-en_de.argosmodel", package_parts(tmp_path_factory.mktemp("argos")))
    for name, seed in (("own", 1), ("old", 2)):
        for language, more in (("en", 0), ("de", 10)):
            texts = hub.sentences(8, seed + more)
            (home / f"{name}.{language}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    pairs = zip(hub.sentences(8, 5), hub.sentences(8, 6), strict=True)
    units = "".join(UNIT.format(*pair) for pair in pairs)
    memory = f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'
    (home / "memory.tmx").write_text(memory, encoding="utf-8")
    return home


def test_every_command_works_as_written(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(at_home)
    assert len(COMMANDS) > 15
    for command in COMMANDS:
        assert main(shlex.split(command)) == 0, command


@pytest.mark.parametrize("precision", ["", "-i8"])
def test_the_folders_of_others_come_in(precision: str, data_folder: Path, tmp_path: Path) -> None:
    theirs = data_folder / "ct2-aren" / f"aren-transliteration{precision}"
    assert main(["import", str(theirs), str(tmp_path / "ours")]) == 0
