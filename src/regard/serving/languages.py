"""Languages of a server: their names in English, and which one a text is in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from regard.serving.core import LanguageGuess
from regard.text.languages import primary

_NAMES = (
    "af Afrikaans;am Amharic;ar Arabic;as Assamese;ast Asturian;az Azerbaijani;ba Bashkir;be Belarusian;bg Bulgarian;"
    "bn Bengali;bo Tibetan;br Breton;bs Bosnian;ca Catalan;ceb Cebuano;cs Czech;cy Welsh;da Danish;de German;"
    "dsb Lower Sorbian;el Greek;en English;eo Esperanto;es Spanish;et Estonian;eu Basque;fa Persian;fi Finnish;"
    "fo Faroese;fr French;fy Western Frisian;ga Irish;gd Scottish Gaelic;gl Galician;gsw Swiss German;gu Gujarati;"
    "ha Hausa;he Hebrew;hi Hindi;hr Croatian;hsb Upper Sorbian;ht Haitian Creole;hu Hungarian;hy Armenian;"
    "id Indonesian;ig Igbo;is Icelandic;it Italian;ja Japanese;jv Javanese;ka Georgian;kk Kazakh;km Khmer;kn Kannada;"
    "ko Korean;ku Kurdish;ky Kyrgyz;la Latin;lb Luxembourgish;lo Lao;lt Lithuanian;lv Latvian;mg Malagasy;mi Maori;"
    "mk Macedonian;ml Malayalam;mn Mongolian;mr Marathi;ms Malay;mt Maltese;my Burmese;nb Norwegian Bokmål;"
    "nds Low German;ne Nepali;nl Dutch;nn Norwegian Nynorsk;no Norwegian;oc Occitan;or Odia;pa Punjabi;pl Polish;"
    "ps Pashto;pt Portuguese;qu Quechua;rm Romansh;ro Romanian;ru Russian;rw Kinyarwanda;sa Sanskrit;sd Sindhi;"
    "se Northern Sami;si Sinhala;sk Slovak;sl Slovenian;sn Shona;so Somali;sq Albanian;sr Serbian;st Southern Sotho;"
    "su Sundanese;sv Swedish;sw Swahili;ta Tamil;te Telugu;tg Tajik;th Thai;ti Tigrinya;tk Turkmen;tl Tagalog;"
    "tn Tswana;tr Turkish;tt Tatar;ug Uyghur;uk Ukrainian;ur Urdu;uz Uzbek;vi Vietnamese;wo Wolof;xh Xhosa;yi Yiddish;"
    "yo Yoruba;yue Cantonese;zh Chinese;zu Zulu"
)
NAMES = dict(one.split(" ", 1) for one in _NAMES.split(";"))


def language_name(code: str) -> str:
    """The English name of a code, with what follows it: ``pt-BR`` → ``Portuguese (BR)``; else the code."""
    name, rest = NAMES.get(primary(code)), code.replace("_", "-").partition("-")[2]
    return code if name is None else f"{name} ({rest})" if rest else name


def guess_languages(text: str, among: Sequence[str]) -> list[LanguageGuess]:
    """How probable each of some languages is for a text, the best first; those that nobody can tell come last.

    Args:
        text: any; only the first few thousand characters are looked at.
        among: codes.
    """
    found = dict(_identifier().rank(text[:4000])) if text.strip() else {}
    scores = {code: float(found.get(primary(code), 0.0)) for code in among}
    total = sum(scores.values())
    guesses = [LanguageGuess(code, score / total if total else 0.0) for code, score in scores.items()]
    return sorted(guesses, key=lambda one: -one.confidence)


@cache
def _identifier() -> Any:
    """The classifier of py3langid, whose weights are an array file that comes with it."""
    import py3langid
    from py3langid.langid import LanguageIdentifier

    path = Path(py3langid.__file__).parent / "data" / "model.npz.xz"
    return LanguageIdentifier.from_model_file(path, norm_probs=True)
