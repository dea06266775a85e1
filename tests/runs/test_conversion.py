"""Folders of converted models are whole or not there, and say what the other side does not hold."""

import json
import shutil

import numpy as np
import pytest
import tokenizers
import torch
from safetensors.torch import load_file

import regard
from regard.config import recipe_from, recipe_toml
from regard.models import store
from regard.runs import conversion
from regard.runs.conversion import export_model, exports_of, import_model
from regard.system.errors import Damaged, RegardError, UsageError
from regard.tasks import model_class
from regard.tasks.assets import FittedValues
from regard.tasks.classification.classifier import ClassAssets
from regard.tasks.language.training import RunningTextJob
from regard.tasks.model_folder import load_recipe_and_assets
from regard.text.tokenizers.hugging_face import HuggingFaceTokenizer
from regard.text.tokenizers.tokenizer import learn
from regard.text.tokenizers.vocabulary import Vocabularies
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Files
from tests.models.small_models import assert_near, stir
from tests.refusals import refused
from tests.runs.convert.random_recipes import T5 as T5_LIKE
from tests.runs.convert.small_exports import SIZES
from tests.runs.convert.small_folders import LABELS, TEXTS, around, folder_of, untied_t5
from tests.runs.convert.small_peers import packed, transformers
from tests.training.toy import Counting, flip

T5_ONE = {"encoder_layers": 1, "decoder_layers": 1, **T5_LIKE}


def made(folder, task, model, assets, **sections):
    """A model folder of ours with random weights."""
    recipe = recipe_from({"task": task, "model": {**SIZES, **model}, "data": {"max_tokens": 40}, **sections})
    built = model_class(task).build(recipe, assets.sizes)
    stir(built)
    folder.mkdir()
    contents = {"recipe.toml": recipe_toml(recipe).encode(), "model.safetensors": store.to_bytes(store.weights(built))}
    manifest.replace(folder, {name: [part] for name, part in {**contents, **assets.contents}.items()}, Files())
    return folder


def rewrite(folder, weights):
    manifest.replace(folder, {"model.safetensors": [store.to_bytes(weights)]}, Files())


def classifier(folder, fitted=None, **section):
    assets = ClassAssets(learn(TEXTS * 3, 290, symbols=("[CLS]", "[MASK]")), LABELS, fitted or FittedValues())
    return made(folder, "classification", {"layers": 1, "max_positions": 40}, assets, classification=section)


def translator(folder, **model):
    """With one vocabulary; its tokenizer."""
    tokenizer = learn(TEXTS * 3, 290)
    made(folder, "translation", model, Vocabularies(tokenizer, tokenizer, True))
    return tokenizer


@pytest.fixture
def imported(tmp_path):
    """Brings in a model of this class: its peer and tokenizer, and what came of it."""

    def bring(name):
        return *folder_of(name, tmp_path / "theirs"), import_model(tmp_path / "theirs", tmp_path / "ours")

    return bring


def test_what_is_brought_in_is_a_whole_model_folder(tmp_path):
    folder_of("BertForSequenceClassification", tmp_path / "theirs")
    task = import_model(tmp_path / "theirs", ours := tmp_path / "deep" / "ours")
    manifest.verify(ours, extra=True)
    files = {"recipe.toml", "model.safetensors", "tokenizer.json", "labels.json", "card.md", "manifest.json"}
    assert {path.name for path in ours.iterdir()} == files
    assert list(ours.parent.iterdir()) == [ours]
    assert task.name == "classification"
    ours_now, theirs = regard.load(ours).classify(TEXTS[0]), task.classify(TEXTS[0])
    assert ours_now.labels == theirs.labels
    assert ours_now.probabilities == pytest.approx(theirs.probabilities)


def test_nothing_is_written_over(tmp_path, imported):
    imported("BertModel")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("years")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place in (tmp_path / "taken", tmp_path / "taken" / "thesis.txt", tmp_path / "link"):
        for convert, folder in ((import_model, "theirs"), (export_model, "ours")):
            with refused(RegardError, place):
                convert(tmp_path / folder, place)
    assert (tmp_path / "taken" / "thesis.txt").read_text() == "years"


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_nothing(there, tmp_path, imported, monkeypatch):
    imported("BertForMaskedLM")
    out = tmp_path / "below" / "out"
    (out if there else out.parent).mkdir(parents=True)
    written = []

    def full(self, *given, write=Files.write):
        written.append(given)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        return write(self, *given)

    for convert, folder in ((import_model, "theirs"), (export_model, "ours")):
        written.clear()
        with monkeypatch.context() as patched:
            patched.setattr(Files, "write", full)
            with refused(RegardError, out):
                convert(tmp_path / folder, out)
        assert [path.name for path in out.parent.iterdir()] == (["out"] if there else [])
        assert not there or not list(out.iterdir())
    import_model(tmp_path / "theirs", out)


def test_what_cannot_be_loaded_is_not_left_there(tmp_path, monkeypatch):
    folder_of("BertForMaskedLM", tmp_path / "theirs")

    def refuses(*_: object) -> None:
        raise RegardError("is not for us")

    monkeypatch.setattr(conversion, "load", refuses)
    with refused(RegardError):
        import_model(tmp_path / "theirs", tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_the_temperature_goes_into_the_weights(kind, tmp_path):
    folder = classifier(tmp_path / "ours", FittedValues(temperature=2.5), kind=kind)
    assert export_model(folder, tmp_path / "out") == []
    task = regard.load(folder)
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    logits = torch.cat([peer(**tokenizer(text, return_tensors="pt")).logits for text in TEXTS])
    assert_near(logits, task.scores(TEXTS) / 2.5, 1e-4)
    again = import_model(tmp_path / "out", tmp_path / "again")
    assert again.recipe.classification.kind == kind
    assert again.assets.fitted == FittedValues()
    for one, other in zip(task.classify(TEXTS), again.classify(TEXTS), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_a_threshold_that_stays_behind_is_said(tmp_path):
    said = export_model(classifier(tmp_path / "ours", FittedValues(threshold=0.4)), tmp_path / "out")
    assert said == ["the probability 0.4 below which nothing is believed has no place there"]


def test_neither_a_damaged_folder_nor_numbers_that_are_not_finite_are_taken_out(tmp_path):
    folder = classifier(tmp_path / "ours")
    weights, path = store.weights(regard.load(folder).model), folder / "model.safetensors"
    flip(path)
    with refused(Damaged, "model.safetensors"):
        export_model(folder, tmp_path / "out")
    weights["head.classes.bias"][1] = torch.nan
    rewrite(folder, weights)
    with refused(RegardError, "model.safetensors", "'head.classes.bias'"):
        export_model(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_encoder_goes_in_and_out_with_all_that_lies_around_it(tmp_path):
    peer, tokenizer = folder_of("BertModel", tmp_path / "theirs")
    peer.pooler = None
    peer.save_pretrained(tmp_path / "theirs")
    around(tmp_path / "theirs", kinds=("Transformer", "Pooling", "Normalize"), max_seq_length=24)
    task = import_model(tmp_path / "theirs", tmp_path / "ours")
    found = task.encode(TEXTS)
    for text, row in zip(TEXTS, found, strict=True):
        expected = peer(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).detach().numpy()
        assert_near(row, expected / np.linalg.norm(expected), 1e-4)
    assert_near(task.encode(TEXTS[0]), found[0], 1e-4)
    assert_near(np.linalg.norm(task.encode(TEXTS, normalise=False, pool="max"), axis=1).min(), 3.0, 1.0)
    export_model(tmp_path / "ours", tmp_path / "out")
    said = json.loads((tmp_path / "out" / "1_Pooling" / "config.json").read_text())
    modes = {"cls": False, "mean": True, "max": False}
    assert {mode: said[f"pooling_mode_{mode}_token{'s' * (mode != 'cls')}"] for mode in modes} == modes
    assert said["word_embedding_dimension"] == 12
    shutil.rmtree(tmp_path / "ours")
    again = import_model(tmp_path / "out", tmp_path / "ours")
    assert again.recipe == task.recipe
    assert np.array_equal(again.encode(TEXTS), found)


def test_ctranslate2_gets_what_it_can_hold(tmp_path):
    pytest.importorskip("ctranslate2")
    folder = classifier(tmp_path / "ours")
    (said,) = export_model(folder, tmp_path / "fast", "ctranslate2")
    assert "holds the encoder alone" in said
    assert (tmp_path / "fast" / "tokenizer.json").is_file()


def test_ctranslate2_is_told_of_a_start_symbol(tmp_path):
    pytest.importorskip("ctranslate2")
    translator(tmp_path / "ours", **T5_ONE)
    (said,) = export_model(tmp_path / "ours", tmp_path / "fast", "ctranslate2")
    assert 'suppress_sequences=[["<pad>"]]' in said


@pytest.mark.parametrize("model", [{}, {"norm_place": "pre"}])
def test_ctranslate2_ends_what_it_reads_by_itself(model, tmp_path):
    """So what is usually written around such a folder is right: pieces alone, by the tokenizer that lies there."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    tokenizer = translator(folder := tmp_path / "ours", encoder_layers=2, decoder_layers=2, **model)
    export_model(folder, tmp_path / "fast", "ctranslate2")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "fast" / "tokenizer.json"))
    pieces = [theirs.encode(text).tokens for text in TEXTS]
    assert pieces == [[tokenizer.names[id] for id in tokenizer.encode(text).ids] for text in TEXTS]
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "fast")
    assert [again.convert_ids_to_tokens(again.encode(text)) for text in TEXTS] == pieces
    fast = ctranslate2.Translator(str(tmp_path / "fast"), device="cpu", intra_threads=1)
    found = fast.translate_batch(pieces, beam_size=1, max_decoding_length=9, return_scores=True, length_penalty=0)
    for one, (ours,) in zip(found, regard.load(folder).nbest(TEXTS, beam=1, max_extra=9), strict=True):
        assert one.hypotheses[0] == [tokenizer.names[id] for id in ours.tokens][:9]
    config = json.loads((tmp_path / "fast" / "config.json").read_text())
    assert config["add_source_eos"] is True
    (tmp_path / "fast" / "config.json").write_text(json.dumps({**config, "add_source_eos": False}))
    bare = ctranslate2.Translator(str(tmp_path / "fast"), device="cpu", intra_threads=1)  # which adds nothing
    others = bare.translate_batch(pieces, beam_size=1, max_decoding_length=9, return_scores=True)
    assert all(one.scores != other.scores for one, other in zip(found, others, strict=True))


def test_a_t5_taught_spans_starts_with_a_symbol_of_its_own(tmp_path, imported):
    *_, task = imported("T5ForConditionalGeneration")
    recipe = (tmp_path / "ours" / "recipe.toml").read_text().replace("\nspans = false", "\nspans = true")
    manifest.replace(tmp_path / "ours", {"recipe.toml": [recipe.encode()]}, Files())
    with torch.no_grad():
        task.model.encoder.input.tokens.weight[0] += 1.0  # the pad piece's row is learned, the start symbol's is not
    rewrite(tmp_path / "ours", store.weights(task.model))
    assert export_model(tmp_path / "ours", tmp_path / "out") == []
    peer = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
    again = import_model(tmp_path / "out", tmp_path / "again")
    assert isinstance(again.assets.tokenizer, HuggingFaceTokenizer)
    assert again.assets.tokenizer.names == task.assets.tokenizer.names
    assert again.recipe.text_to_text.spans
    before, after = store.weights(task.model), store.weights(again.model)
    assert all(torch.equal(before[name], after[name]) for name in before)
    source, pieces = torch.arange(3, 9), task.assets.tokenizer.size
    assert peer.config.decoder_start_token_id == pieces
    expected = peer(input_ids=source[None], labels=source[None]).logits[0, :, :pieces]
    for one in (task, again):
        target = torch.cat([torch.tensor([one.assets.tokenizer.start]), source[:-1]])
        model = one.model
        said = model.scores(model.decoder(packed([target]), model.encoder(packed([source])), packed([source])))
        assert_near(said[:, :pieces], expected, 1e-4)
    pytest.importorskip("ctranslate2")
    with refused(UsageError, "to ctranslate2"):
        export_model(tmp_path / "ours", tmp_path / "fast", "ctranslate2")


@pytest.mark.parametrize(
    ("kind", "form", "where"),
    [
        ("ViTForImageClassification", "onnx", "to"),
        ("ViTForImageClassification", "ctranslate2", "model.family"),
        ("GPT2LMHeadModel", "ctranslate2", "to ctranslate2"),
    ],
)
def test_ctranslate2_is_refused_where_it_cannot(tmp_path, imported, monkeypatch, kind, form, where):
    """Nothing is to be installed for a model that it could not hold."""
    imported(kind)
    monkeypatch.setattr(conversion, "find_spec", lambda name: None)
    with refused(UsageError, where):
        export_model(tmp_path / "ours", tmp_path / "out", form)
    assert not (tmp_path / "out").exists()


def said_of(folder):
    return exports_of(folder, *load_recipe_and_assets(folder)).line


def test_of_a_t5_that_is_not_tied_the_weights_decide(tmp_path):
    untied_t5(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    assert said_of(tmp_path / "ours") == "this model can be exported to: Hugging Face (T5), CTranslate2"
    assert export_model(tmp_path / "ours", tmp_path / "out") == []
    held = load_file(tmp_path / "ours" / "model.safetensors")
    held["decoder.input.tokens.weight"] += 1.0
    rewrite(tmp_path / "ours", held)
    assert said_of(tmp_path / "ours").startswith("this model cannot be exported as it is: T5 needs model.tie")
    with refused(UsageError, "model.tie"):
        export_model(tmp_path / "ours", tmp_path / "other")


def test_what_begins_from_a_tokenizer_of_others_has_no_name_for_a_start_symbol(tmp_path, imported, monkeypatch):
    told = Counting()

    def prepare(self, *more):
        raise RegardError("enough")

    monkeypatch.setattr(RunningTextJob, "prepare", prepare)
    imported("T5ForConditionalGeneration")
    assert said_of(tmp_path / "ours").endswith("(T5), CTranslate2")
    (tmp_path / "a.txt").write_text("the grass is green\n" * 9)
    spans = {"task": "text-to-text", "settings": ["text_to_text.spans=true"], "start_from": tmp_path / "ours"}
    with refused(RegardError):
        regard.train(train=tmp_path / "a.txt", output=tmp_path / "new", reporter=told, **spans)
    assert told.events[-1] == "this model can be exported to: Hugging Face (T5)"
