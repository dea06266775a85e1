import pytest

from regard.text.languages import bleu_tokeniser, joiner, language_of


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("train.en", "en"),
        ("corpus.de.gz", "de"),
        ("a/b.c/valid.en-GB.txt.xz", "en"),
        ("udhr/deu.txt.gz", "und"),
        ("x.deu", "de"),
        ("x.zh_CN", "zh"),
        ("pairs.tsv", "und"),
        ("train", "und"),
        ("notes.txt", "und"),
        ("x.PT.zst", "pt"),
    ],
)
def test_the_extension_names_the_language(name: str, language: str) -> None:
    assert language_of(name) == language


def test_every_tokeniser_named_is_one_sacrebleu_has() -> None:
    from sacrebleu.metrics import BLEU

    for language in ("en", "de", "und", "zh", "ja", "ko", "th"):
        BLEU(tokenize=bleu_tokeniser(language)).sentence_score("a b", ["a b"])
    assert bleu_tokeniser("de") == "13a"
    assert bleu_tokeniser("zh") == "zh"


@pytest.mark.parametrize("code", ["zh", "zh-CN", "zh_TW", "ZH", "zho", "zh-Hans-CN", "zh_CN.utf8"])
def test_a_region_a_script_or_capitals_do_not_change_the_language(code: str) -> None:
    assert (bleu_tokeniser(code), joiner(code)) == ("zh", "")
    assert (bleu_tokeniser("ja_JP"), joiner("JA")) == (bleu_tokeniser("ja"), "")
    assert (bleu_tokeniser("en-GB"), joiner("EN"), joiner("en")) == ("13a", " ", " ")
