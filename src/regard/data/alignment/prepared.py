"""Word links of prepared pairs, learned from them or given, made once and kept beside their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from regard.config import checksum
from regard.data.alignment.hmm import AT_ONCE, LEARNED, LONGEST, WordAligner, Words
from regard.data.alignment.links import Links
from regard.data.batches.batch import Ids
from regard.data.batches.texts import PairDataset
from regard.data.prepare.folder import sha256_of
from regard.data.prepare.shards import Shards, Side, SideWriter
from regard.system import disk
from regard.system.errors import Damaged, RegardError
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

INDEX = "train.links.json"


class PreparedLinks:
    """The links of every training pair, between the words of the tokenizers.

    Args:
        links: of each pair the numbers of its links, :data:`LONGEST` times the source word plus the target word.
    """

    def __init__(self, links: Side) -> None:
        self._links = links

    def gather(self, sentences_B: Ids) -> tuple[Ids, Ids, Ids]:
        """``(source_R, target_R, counts_B)``: the words of the links of these pairs end to end, how many of each."""
        number_R, counts_B = self._links.gather(0, sentences_B)
        return *np.divmod(number_R, LONGEST), counts_B

    @classmethod
    def of(
        cls, folder: Path, pairs: PairDataset, vocabularies: Vocabularies, given: Iterable[Links] | None = None
    ) -> PreparedLinks:
        """Those in the folder of the prepared pairs; written first where they are not there.

        Args:
            folder: of the pairs.
            pairs, vocabularies: those that are aligned.
            given: the links of each pair, only read where they are to be written; default: they are learned.

        Raises:
            Damaged: a file is not as it was written.
        """
        if not (folder / INDEX).exists():
            _write(folder, pairs, _learn(pairs, vocabularies) if given is None else given)
        return cls(Shards(folder, _read(folder, pairs.fingerprint)))


def _read(folder: Path, fingerprint: str) -> dict[str, object]:
    where = folder / INDEX
    index = checksum.load_json(disk.content(where, kind="index", error=Damaged), where)
    for name, entry in index["files"].items():
        if not disk.is_plain(name) or sha256_of(folder / name) != entry["sha256"]:
            raise Damaged("is missing or damaged", str(folder / name))
    if index["fingerprint"] != fingerprint:
        raise RegardError("is of other data; remove it, and it is made anew", str(where))
    side: dict[str, object] = index["links"]
    return side


def _write(folder: Path, pairs: PairDataset, links: Iterable[Links]) -> None:
    """Write the links, and the index last."""
    writer = SideWriter(folder, "train.links", LONGEST * LONGEST)
    for one in links:
        writer.add([np.array([i * LONGEST + j for i, j in sorted(one)], np.int64)])
    if writer.count != pairs.pairs:
        raise RegardError(f"has {pairs.pairs:,} pairs, but there are links of {writer.count:,}", str(folder))
    side, files = writer.close()
    content = {"fingerprint": pairs.fingerprint, "links": side, "files": files}
    disk.replace(folder / INDEX, checksum.dump_json(content))


def _learn(pairs: PairDataset, vocabularies: Vocabularies) -> Iterator[Links]:
    """Learn from the first pairs, align all."""
    known: list[dict[bytes, str]] = [{}, {}]

    def words(begin: int, end: int) -> Iterator[list[Words]]:
        tokenizers = vocabularies.source, vocabularies.target
        sides = (pairs.source, pairs.target), tokenizers, known
        for side, tokenizer, spelled in zip(*sides, strict=True):
            yield [_words(ids, tokenizer, spelled) for ids in _sentences(side, begin, end)]

    aligner = WordAligner(*words(0, min(LEARNED, pairs.pairs)))
    for begin in range(0, pairs.pairs, AT_ONCE):
        yield from aligner.align(*words(begin, min(begin + AT_ONCE, pairs.pairs)))


def _sentences(side: Side, begin: int, end: int) -> list[Ids]:
    ids_T, lengths_B = side.gather(0, np.arange(begin, end))
    return np.split(ids_T, lengths_B.cumsum()[:-1])


def _words(ids: Ids, tokenizer: AnyTokenizer, spelled: dict[bytes, str]) -> list[str]:
    """What the words of a sentence say, in lower case; the last token, ``</s>``, is none."""
    first_T = tokenizer.word_starts(ids.tolist())[:-1]
    parts = np.split(ids[:-1], np.flatnonzero(first_T)[1:]) if len(ids) > 1 else []
    found = []
    for part in parts:
        key = part.tobytes()
        if key not in spelled:
            spelled[key] = tokenizer.decode(part.tolist()).strip().lower()
        found.append(spelled[key])
    return found
