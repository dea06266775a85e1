"""``regard translate --input report.docx``: documents in their own formats."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from cyclopts import Group, Parameter

from regard.cli.io.exchange import Exchange, TextOptions
from regard.cli.io.lines import encode_line, json_line
from regard.cli.io.load_model import refuse_no_file
from regard.cli.io.terminal import say
from regard.system import disk
from regard.system.errors import RegardError, Stopped, UsageError
from regard.text.counts import counted
from regard.text.languages import UNKNOWN, primary

if TYPE_CHECKING:
    from regard.documents.memories.memory import TranslationMemory
    from regard.tasks.text.output_options import OutputOptions
    from regard.tasks.translation.translator import Translation

LARGEST = 256 << 20
"""Bytes of a document."""
MOST = 100_000
"""Files of a folder or pattern."""
_GROUP = Group("Documents", sort_key=2)


@Parameter(name="*", group=_GROUP)
@dataclass(frozen=True)
class DocumentOptions:
    """How documents are translated.

    Args:
        format: the kind of the document, or of all of a folder, instead of that which the name tells: text (paragraphs
            between empty lines), markdown, html, docx, pptx, xlsx, opendocument, epub, latex, srt, vtt, ass, po, xliff,
            json, yaml.
        bilingual: write beside the output its texts with their translations, as XLIFF (OUTPUT.xlf) or TMX (OUTPUT.tmx):
            for a person to correct, and for regard train --pairs to learn from.
        memory: a translation memory (TMX, XLIFF, PO): where it has a segment or a sentence, its translation is taken.
    """

    format: str | None = None
    bilingual: Literal["xliff", "tmx"] | None = None
    memory: Path | None = None


NO_DOCUMENT_OPTIONS = DocumentOptions()


@dataclass(frozen=True)
class Files:
    """A document and its translation."""

    input: Path
    output: Path | None
    kind: str


def find_files(given: TextOptions, format: str | None) -> list[Files] | None:
    """The documents that are given; ``None`` where the input is no document: lines of text.

    Raises:
        UsageError: a folder or a pattern has none, or there is no folder for what is made of them.
    """
    from regard.documents.kinds import KINDS, kind_of

    if format is not None and format not in KINDS:
        raise UsageError(f"{format!r:.40} is no kind of document; there are {', '.join(KINDS)}", "--format")
    source = given.input
    if source is None or str(source) == "-":
        if format is not None:
            raise UsageError("is that of a file; name it by --input", "--format")
        return None
    if not source.is_dir() and not (glob.has_magic(str(source)) and not source.exists()):
        kind = format or kind_of(source)
        return None if kind is None else [Files(source, given.output, kind)]
    root = source if source.is_dir() else _root(source)
    if given.output is None or (given.output.exists() and not given.output.is_dir()):
        raise UsageError("of several documents must be a folder; name one by --output", "--output")
    if given.output.resolve() == root.resolve():
        raise UsageError("is the input itself; choose another --output", str(given.output))
    paths = source.rglob("*") if source.is_dir() else map(Path, glob.iglob(str(source), recursive=True))
    found = [(path, format or kind_of(path)) for path in _once(paths, given.output.resolve())]
    files = [Files(path, given.output / path.relative_to(root), kind) for path, kind in found if kind]
    if not files:
        raise UsageError("there is no document; regard translate --help names the kinds", str(source))
    if left := len(found) - len(files):
        say(f"{source}: {counted(left, 'file')} of other kinds {'is' if left == 1 else 'are'} left out")
    return files


def _once(paths: Iterable[Path], output: Path) -> list[Path]:
    """Files in their order, each once, whatever links lead to it; none of the output folder."""
    found = dict[Path, Path]()
    for path in sorted(paths, key=lambda one: (len(one.parts), one)):
        real = path.resolve()
        if path.is_file() and output not in real.parents:
            found.setdefault(real, path)
        if len(found) > MOST:
            raise UsageError(f"names more than {MOST:,} files; name fewer", str(path))
    return sorted(found.values())


def _root(pattern: Path) -> Path:
    """The folder before the first part of a pattern with a sign."""
    parts = pattern.parts
    first = next(n for n, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first]) if first else Path()


def translate_files(
    files: Sequence[Files],
    exchange: Exchange,
    task: Translation,
    wanted: OutputOptions,
    given: TextOptions,
    options: DocumentOptions,
) -> None:
    """Translate documents one after another with a model that is open.

    Args:
        exchange: that opened it.

    Raises:
        RegardError: one cannot be translated; the others were.
    """
    from regard.tasks.translation.align import is_known

    memory, failed = _memory(options.memory, task), 0
    if not is_known(task.recipe):
        say("tags go where the mean attention of all layers says; regard align --tune finds better heads")
    for number, one in enumerate(files, 1):
        if one.output is not None and one.output != given.output:
            if one.output.is_file() and one.output.stat().st_mtime >= one.input.stat().st_mtime:
                say(f"{one.output}: is there, and newer than {one.input}; it stays as it is")
                continue
            say(f"{one.input} ({number:,} of {len(files):,})")
            one.output.parent.mkdir(parents=True, exist_ok=True)
        try:
            _translate_one(one, exchange, task, wanted, given, options, memory)
        except Stopped:
            raise
        except RegardError as error:
            if len(files) == 1:
                raise
            say(str(error))
            failed += 1
    if failed:
        raise RegardError(f"{failed:,} of {counted(len(files), 'document')} could not be translated; see above")


def about(options: DocumentOptions) -> dict[str, object]:
    """What results depend on.

    Raises:
        UsageError: there is no such memory.
    """
    if options.memory is None:
        return {"--format": options.format}
    refuse_no_file(options.memory)
    return {"--format": options.format, "--memory": sha256(options.memory.read_bytes()).hexdigest()}


def _translate_one(
    one: Files,
    opened: Exchange,
    task: Translation,
    wanted: OutputOptions,
    given: TextOptions,
    options: DocumentOptions,
    memory: TranslationMemory | None,
) -> None:
    from regard.documents.kinds import read_document, target_language
    from regard.documents.memories.bilingual import WRITERS
    from regard.documents.translate import SegmentAnswer, SegmentTranslator, report, write_document

    refuse_no_file(one.input)
    if not one.input.is_file():
        raise RegardError("is no file; a document is read whole", str(one.input))
    beside = _beside(one, options)
    if (size := one.input.stat().st_size) > LARGEST:
        raise RegardError(f"has {size:,} bytes; documents of up to {LARGEST:,} are read", str(one.input))
    data = one.input.read_bytes()
    document, said, own = read_document(data, one.kind, str(one.input)), target_language(data, one.kind), task.direction
    if said and own[1] != UNKNOWN and primary(said) != primary(own[1]):
        say(f"warning: {one.input} says that it is translated into {said}, but the model writes {own[1]}")
    translator = SegmentTranslator(task, wanted, memory=memory)
    answers = list[SegmentAnswer]()

    def content(texts: list[str], first: int) -> bytes:
        some = document.segments[first - 1 : first - 1 + len(texts)]
        return b"".join(encode_line(json_line(asdict(found))) for found in translator(some))

    def whole(stream: BinaryIO) -> bytes:
        answers.extend(map(SegmentAnswer.read, stream))
        return write_document(document, answers, str(one.input))

    with Exchange("translate", opened.folder, (), replace(given, input=one.input, output=one.output), {}) as exchange:
        exchange.reuse(opened)
        exchange.given.held = [repr((segment.text, segment.tags)) for segment in document.segments]
        exchange.keep(content, whole=whole)
    for line in report(document.segments, answers):
        say(line)
    if beside and options.bilingual:
        close = memory.close if memory else None
        disk.replace(beside, WRITERS[options.bilingual](document.segments, answers, task.direction, close))
        say(f"wrote {beside}")


def _beside(one: Files, options: DocumentOptions) -> Path | None:
    """The bilingual file that is asked for.

    Raises:
        UsageError: it is there, perhaps with corrections; or the output has no name.
    """
    if options.bilingual is None:
        return None
    if one.output is None:
        raise UsageError("is written beside the output; name that by --output", "--bilingual")
    found = one.output.with_name(f"{one.output.name}.{'xlf' if options.bilingual == 'xliff' else 'tmx'}")
    if found.exists():
        raise UsageError("is there, perhaps with corrections; learn from it, or move it away", str(found))
    return found


def _memory(path: Path | None, task: Translation) -> TranslationMemory | None:
    if path is None:
        return None
    from regard.data.corpora.memories import MEMORIES
    from regard.documents.memories.memory import TranslationMemory

    if path.suffix.lower() not in MEMORIES:
        raise UsageError(f"{path.name!r:.60} is no memory; these end in {', '.join(MEMORIES)}", "--memory")
    return TranslationMemory.read(path, task.direction)
