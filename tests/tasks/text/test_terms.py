"""Translations that contain terms, keep what is protected, and have nothing that is forbidden."""

import random
import re
import shutil
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.config import recipe_from
from regard.system.errors import RegardError, UsageError
from regard.tasks.model_folder import edit_terms, open_without_torch
from regard.tasks.text.terms import Terminology, TermSearch, form_tokens
from regard.tasks.translation.translator import Translation
from regard.text.terms import TermList, count
from regard.text.tokenizers.vocabulary import TERMS, learn_vocabularies
from regard.training.checkpoints import manifest, output_folder
from tests.refusals import refused

RECIPE = {
    "task": "translation",
    "data": {"max_tokens": 40},
    "text": {"source_language": "en", "target_language": "de"},
    "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2},
    "decoding": {"max_extra": 8, "beam": 3},
}
WORDS = "the dog cat runs sees house green old man tree der hund katze läuft sieht haus grün alt mann baum".split()
TEXTS = ["the old dog sees the tree", "a dog, a dog", "cat", "", "3 dogs at {place}, 3"]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "runs"
LIST = TermList(("dog\tHund|Hundes", "tree\tgrüner Baum", "cat\t=", "the old\tDer|Die alte"))


def made(**options) -> Translation:
    """A translator with made-up weights, and a vocabulary learned with these options."""
    draw = np.random.default_rng(1)
    pairs = [(" ".join(draw.choice(WORDS, 6)), " ".join(draw.choice(WORDS, 6))) for _ in range(60)]
    recipe, assets = recipe_from(RECIPE), learn_vocabularies(pairs, 340, **options)
    return Translation(recipe, assets, Translation.build(recipe, assets.sizes, 5).eval())


@pytest.fixture(scope="module")
def model() -> Translation:
    return made()


def translated(model, texts, terms, **options):
    """The texts of all outputs; nothing is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [[one.text for one in line] for line in model.nbest(texts, terms=terms, **options)]


@pytest.mark.parametrize("beam", [1, 3])
def test_where_the_source_has_a_term_every_output_has_a_form(model, beam):
    own = Terminology(LIST, protect=True)
    found = translated(model, TEXTS, own, n=beam, beam=beam)
    wanted = [["Hund|Hundes", "grüner Baum", "Der|Die alte"], ["Hund|Hundes"] * 2, ["cat"], [], ["3", "3", "{place}"]]
    for outputs, terms in zip(found, wanted, strict=True):
        for forms in terms:
            assert all(count(forms.split("|"), text) >= terms.count(forms) for text in outputs), (terms, outputs)
    assert found[3] == [""]
    assert translated(model, TEXTS[2:3], own)[0] != translated(model, TEXTS[2:3], None)[0]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_text_alone_is_translated_as_among_others_with_other_terms(precision):
    """To the bit, by the engine."""
    model = open_without_torch(FIXTURES / "translator" / "model", "cpu", precision)
    own = Terminology(TermList((*LIST.lines[1:], "dog\tKatze")), protect=True, forbidden=("e", "a", "der"))
    together = model.nbest(TEXTS * 3, 2, terms=own)
    assert together[5:10] == together[:5] == [model.nbest([text], 2, terms=own)[0] for text in TEXTS]
    plain = ["the", "a man runs"]
    assert model.nbest([*plain, *TEXTS], 2, terms=Terminology(LIST))[:2] == model.nbest(plain, 2)


def test_random_terms_are_always_contained(model):
    draw = random.Random(3)
    for _ in range(15):
        words = [draw.choice(["Haus", "é", "Straße", "ab-c", "x.", "日本", "a b", "%d", "H"]) for _ in range(4)]
        own = TermList(tuple(f"s{place}\t{word}" for place, word in enumerate(words)))
        text = " ".join(f"s{draw.randrange(4)}" for _ in range(draw.randint(1, 5)))
        [[found]] = translated(model, [text], Terminology(own), beam=draw.randint(1, 4))
        for word in words:
            number = sum(words[int(one[1])] == word for one in text.split())
            assert count([word], found) >= number, (found, text, words)


def named(own, text):
    return [(one.source, one.forms, one.times) for one in own.wanted(text, "en")]


def test_a_term_wins_over_what_is_protected_unless_it_is_a_part_of_it():
    own = Terminology(TermList(("see 5 dogs\tKatze", "7\tsieben", "name\tName", "dogs\t=|Hunde")), protect=True)
    assert named(own, "I see 5 dogs") == [("see 5 dogs", ("Katze",), 1)]
    assert named(own, "7 or 7.5") == [("7", ("sieben",), 1), ("7.5", ("7.5",), 1)]
    assert named(own, "{name} name") == [("{name}", ("{name}",), 1), ("name", ("Name",), 1)]
    assert named(own, "Dogs, 10\xa0 dogs") == [
        ("Dogs", ("Dogs", "Hunde"), 1),
        ("10", ("10",), 1),
        ("dogs", ("dogs", "Hunde"), 1),
    ]
    assert named(own, "10\xa0000\xa0dogs") == [("10\xa0000", ("10\xa0000",), 1), ("dogs", ("dogs", "Hunde"), 1)]


def test_a_part_of_a_number_or_address_is_no_term():
    terms = Terminology(TermList(("1\teins", "example\tBeispiel")))
    assert not terms.wanted("It has 1,000 balls of www.example.org.", "en")
    assert [one.source for one in terms.wanted("It has 1 example.", "en")] == ["1", "example"]


def test_what_is_forbidden_is_read_as_terms_are(tmp_path):
    path = tmp_path / "f.txt"
    path.write_text(unicodedata.normalize("NFD", "# no\nMänner\n the  old\tman\n"), encoding="utf-8")
    assert Terminology.read(forbid=path).forbidden == ("Männer", "the old man")
    for content, words in ((b"a\nM\xe4nner\n", "UTF-8"), (b"a\n" + b"b" * 201, "201"), (b"a\nb\x01c", "U+0001")):
        path.write_bytes(content)
        with refused(RegardError, "f.txt:2", words):
            Terminology.read(forbid=path)


def test_a_beginning_and_terms_together(model):
    [[found]] = model.nbest(["the dog"], terms=Terminology(LIST), prefixes=["Die Katze, Hund"])
    assert found.text.startswith("Die Katze, Hund")
    [[found]] = model.nbest(["tree"], terms=Terminology(LIST), prefixes=["ein grüner"])
    assert "grüner Baum" in found.text


def test_what_is_forbidden_is_searched_around(model):
    plain = [one[0].text for one in model.nbest(TEXTS)]
    words = sorted({word for text in plain for word in re.findall(r"\w+", text.lower())})
    own = Terminology(forbidden=(words[0], words[-1]))
    assert any(count([word], text.lower()) for text in plain for word in own.forbidden)
    for outputs in translated(model, TEXTS, own, n=2):
        assert not any(count([word], text.lower()) for word in own.forbidden for text in outputs)


def test_what_cannot_be_had_is_said_by_line_and_term(model):
    limited = model.with_settings(["decoding.max_length=4"])
    with pytest.warns(UserWarning, match="line 7: there is no room for the term 'tree' → 'grüner Baum'"):
        [[found]] = limited.nbest(["dog and tree"], first=7, terms=Terminology(TermList(("dog\tH", LIST.lines[1]))))
    assert count(["H"], found.text) == 1
    with pytest.warns(UserWarning, match="line 1: no form of the term 'dog' → 'Hund' can be written"):
        assert made(lowercase=True).nbest(["a dog"], terms=Terminology(TermList(("dog\tHund",))))
    blocked = model.with_settings(["decoding.no_repeat_ngram=1"])
    with pytest.warns(UserWarning, match="line 2: the output lacks the term 'dog' → 'Hund Hund'"):
        assert blocked.nbest(["", "dog"], terms=Terminology(TermList(("dog\tHund Hund",))))
    with pytest.warns(UserWarning, match="line 1: 'Katze' is forbidden; no output was found without it"):
        assert model.nbest(["dog"], terms=Terminology(forbidden=("katze",)), prefixes=["Katze, der"])
    brief = model.recipe.model_copy(update={"decoding": model.recipe.decoding.model_copy(update={"shortlist": True})})
    with refused(UsageError, "decoding.shortlist", "pieces outside"):
        TermSearch(Terminology(LIST), brief, model.symbols, model.target_tokenizer, model.direction)
    with refused(UsageError, "forbid", "'dog'"):
        Terminology(LIST, forbidden=("hund", "Hundes"))


def test_a_bonus_asks_for_nothing_and_keeps_the_models_scores(model):
    shares = []
    for bonus in ("0.001", "3", "100"):
        found = model.with_settings([f"decoding.term_bonus={bonus}"]).nbest(TEXTS, terms=Terminology(LIST))
        shares.append(sum(count(["Hund", "Hundes"], one.text) > 0 for [one] in found))
        for text, [one] in zip(TEXTS, found, strict=True):
            [ids] = model.target_tokenizer.ids_batch([model.target_tokenizer.decode(one.tokens)])
            if text and one.finished and tuple(ids.tolist()) == one.tokens:
                [scored] = model.score([text], [model.target_tokenizer.decode(one.tokens)])
                assert one.score == pytest.approx(scored.log_probability / ((5 + len(ids) + 1) / 6), abs=1e-4)
    assert shares == sorted(shares)
    assert shares[-1] == 2


def test_forms_are_there_behind_a_space_and_at_the_beginning(model):
    tokens = form_tokens(model.target_tokenizer, model.symbols.without, True)
    decode = model.target_tokenizer.decode
    behind, first = tokens.of("haus")
    assert (decode(behind), decode(first)) == (" haus", "haus")
    assert not tokens.letters.begin_V[behind[0]]
    assert tokens.letters.begin_V[first[0]]
    assert tokens.letters.end_V[behind[-1]]
    assert unicodedata.normalize("NFD", "é") != "é"
    assert tokens.of(unicodedata.normalize("NFD", "é")) == ()


def test_a_folders_list_is_changed_and_kept_by_its_translator(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(FIXTURES / "translator" / "model", folder)
    assert edit_terms(folder).lines == ()
    assert not (folder / TERMS).exists()
    (tmp_path / "t.tsv").write_text("man\tQuax|Qu\n# end\ndog\t=\n", encoding="utf-8")
    assert edit_terms(folder, tmp_path / "t.tsv").lines == ("man\tQuax|Qu", "# end", "dog\t=")
    assert edit_terms(folder, remove=["dog"]).lines == ("man\tQuax|Qu", "# end")
    assert all(output_folder.is_ours(path.name) for path in folder.iterdir())
    manifest.verify(folder, extra=True)
    with refused(RegardError, "terms.tsv", "'cat'"):
        edit_terms(folder, remove=["cat"])
    model = regard.Translator.load(folder, "cpu")
    assert model.assets.contents[TERMS] == (folder / TERMS).read_bytes()
    assert count(["Quax", "Qu"], model.translate("the man")) == 1
    plain = regard.Translator.load(FIXTURES / "translator" / "model", "cpu").translate("the man")
    assert model.translate("the man", terms=Terminology()) == plain
    (folder / TERMS).write_text("man\n", encoding="utf-8")
    with refused(RegardError, "terms.tsv:1"):
        edit_terms(folder)
    with refused(UsageError, classifier := FIXTURES / "classifier" / "model", "classifier"):
        edit_terms(classifier)


def test_suppressed_tokens_are_never_produced(model):
    plain, tokenizer = model.nbest(TEXTS, 3), model.target_tokenizer
    used = [token for line in plain for one in line for token in one.tokens]
    setting = f'decoding.suppress=["{tokenizer.piece(97)}", {used[0]}]'
    for task in (model.with_settings([setting]), model.with_settings([setting]).between("en", "de")):
        found = {token for line in task.nbest(TEXTS, 3) for one in line for token in one.tokens}
        assert found.isdisjoint({97, used[0]})
    decoding = model.recipe.decoding.model_copy(update={"suppress": (used[0],)})
    other = Translation(model.recipe.model_copy(update={"decoding": decoding}), model.assets, model.model)
    assert used[0] in other.symbols.without
    for wrong in ("no piece", 99_999, tokenizer.end):
        with refused(UsageError, "decoding.suppress", repr(wrong)):
            model.with_settings([f"decoding.suppress=[{wrong!r}]"])
