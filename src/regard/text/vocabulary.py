"""The vocabularies of a translator: one joint tokenizer for both languages, or one for each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError
from regard.text.foreign import ForeignTokenizer
from regard.text.normalisation import Normalisation
from regard.text.pieces import Units
from regard.text.tokenizer import Tokenizer, learn
from regard.text.tokenizer_file import document_of, parts

JOINT, SOURCE, TARGET = "tokenizer.json", "tokenizer.source.json", "tokenizer.target.json"


AnyTokenizer = Tokenizer | ForeignTokenizer


def read_tokenizer(path: Path | str) -> AnyTokenizer:
    """The tokenizer of a file, one of ours or of another project: ours says its format.

    Raises:
        RegardError: the file is missing, too large or damaged.
    """
    document = document_of(path)
    model = document.get("model") if isinstance(document, dict) else None
    foreign = isinstance(model, dict) and "format" not in model
    return ForeignTokenizer(document, where=str(path)) if foreign else Tokenizer(*parts(document, str(path)))


@dataclass(frozen=True)
class Vocabularies:
    """A tokenizer for each side; the same one twice where ``joint``."""

    source: Tokenizer
    target: Tokenizer
    joint: bool

    @property
    def sha256(self) -> str:
        """One fingerprint of both."""
        return hashlib.sha256(f"{self.source.sha256} {self.target.sha256}".encode()).hexdigest()

    @property
    def sizes(self) -> tuple[int, int]:
        """Pieces of each side."""
        return self.source.size, self.target.size

    @property
    def contents(self) -> dict[str, bytes]:
        """What :meth:`save` writes, by file name."""
        return {name: tokenizer.content for name, tokenizer in self.files.items()}

    @property
    def files(self) -> dict[str, Tokenizer]:
        """File name to tokenizer: ``tokenizer.json``, or ``tokenizer.source.json`` and ``tokenizer.target.json``."""
        return {JOINT: self.source} if self.joint else {SOURCE: self.source, TARGET: self.target}

    def save(self, folder: Path | str) -> None:
        """Write :attr:`files` into a folder."""
        for name, tokenizer in self.files.items():
            tokenizer.save(Path(folder) / name)

    @classmethod
    def load(cls, folder: Path | str) -> Vocabularies:
        """What :meth:`save` wrote.

        Raises:
            RegardError: no tokenizer is there, or one is damaged.
        """
        folder = Path(folder)
        if (folder / JOINT).exists():
            both = Tokenizer.load(folder / JOINT)
            return cls(both, both, joint=True)
        if not (folder / SOURCE).exists():
            raise RegardError(f"holds neither {JOINT} nor {SOURCE}; is it a model folder?", str(folder))
        return cls(Tokenizer.load(folder / SOURCE), Tokenizer.load(folder / TARGET), joint=False)


def learn_vocabularies(
    pairs: Iterable[tuple[str, str]],
    vocabulary: int,
    joint: bool = True,
    normalisation: Normalisation = "nfc",
    *,
    units: Units = "pieces",
    lowercase: bool = False,
) -> Vocabularies:
    """Tokenizers learned from sentence pairs; ``vocabulary`` entries at most on each side, or in the joint one."""

    def learned(texts: Iterable[str]) -> Tokenizer:
        return learn(texts, vocabulary, normalisation, units=units, lowercase=lowercase)

    pairs = list(pairs)
    if joint:
        both = learned(text for pair in pairs for text in pair)
        return Vocabularies(both, both, joint=True)
    return Vocabularies(learned(pair[0] for pair in pairs), learned(pair[1] for pair in pairs), joint=False)
