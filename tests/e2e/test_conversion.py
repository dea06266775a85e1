"""Models brought in from the other library, used and begun from, and taken out again: the answers stay the same."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import regard as regard_package
from tests.convert.small_folders import TEXTS, folder_of
from tests.convert.small_peers import transformers
from tests.e2e.conftest import settings

Run = Any
"""The fixture ``regard``: words in; code, out, err."""
PLAIN = ("NOUN", "VERB", "DET", "ADP", "PUNCT")
GIVEN = "".join(f"{text}\n" for text in TEXTS).encode()


def there_and_back(kind: str, folder: Path, regard: Run, **changes: Any) -> tuple[Any, Any]:
    """A small model brought in as ``ours`` and taken out again as ``back``; theirs and its tokenizer."""
    peer, tokenizer = folder_of(kind, folder / "theirs", **changes)
    done = regard("import", folder / "theirs", folder / "ours")
    assert (done.code, done.err) == (0, "")
    assert f"The model is in {folder / 'ours'}" in done.out
    done = regard("export", folder / "ours", folder / "back")
    assert (done.code, done.out, done.err) == (0, f"The model is in {folder / 'back'}.\n", "")
    return peer, tokenizer


def pipeline(task: str, folder: Path, **options: Any) -> Any:
    return transformers.pipeline(task, model=str(folder), device="cpu", **options)


@pytest.mark.parametrize("changes", [{}, {"problem_type": "multi_label_classification"}, {"labels": ("LABEL_0",)}])
def test_a_classifier(changes: dict[str, Any], tmp_path: Path, regard: Run) -> None:
    there_and_back("BertForSequenceClassification", tmp_path, regard, **changes)
    lines = regard("classify", tmp_path / "ours", "--all", stdin=GIVEN).out.splitlines()
    for place in ("theirs", "back"):
        for line, said in zip(lines, pipeline("text-classification", tmp_path / place)(TEXTS, top_k=None), strict=True):
            expected = {each["label"]: each["score"] for each in said}
            assert json.loads(line)["probabilities"] == pytest.approx(expected, abs=2e-6)


def same_tags(ours: Path, theirs: Path, texts: list[str], regard: Run) -> None:
    """Each word has the tag that its first piece has there."""
    lines = regard("tag", ours, "--json", stdin="".join(f"{text}\n" for text in texts).encode()).out.splitlines()
    said = pipeline("token-classification", theirs, ignore_labels=[])(texts)
    for text, line, pieces in zip(texts, lines, said, strict=True):
        begins = {piece["start"]: piece["entity"] for piece in pieces}
        found, at = json.loads(line), 0
        for word, tag in zip(found["words"], found["tags"], strict=True):
            at = text.index(word, at)
            assert begins[at] == tag
            at += len(word)


def test_guesses_of_masked_words(tmp_path: Path, regard: Run) -> None:
    _, tokenizer = there_and_back("BertForMaskedLM", tmp_path, regard)
    size = len(tokenizer)
    text = "a dog [MASK] over the grass."
    (line,) = regard("fill", tmp_path / "ours", "-k", size, "--json", stdin=text.encode()).out.splitlines()
    found = {one["piece"]: one["probability"] for one in json.loads(line)["gaps"][0]}
    for place in ("theirs", "back"):
        expected = {one["token_str"]: one["score"] for one in pipeline("fill-mask", tmp_path / place)(text, top_k=size)}
        symbols = {name: found.get(name) for name in expected.keys() - found.keys()}
        assert symbols.keys() <= {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
        assert found == pytest.approx({name: expected[name] for name in found}, abs=1e-6)


def test_a_language_model(tmp_path: Path, regard: Run) -> None:
    there_and_back("GPT2LMHeadModel", tmp_path, regard)
    said = regard("generate", tmp_path / "ours", "--prompt", "A dog", "--temperature", 0, "--max-tokens", 12)
    for place in ("theirs", "back"):
        written = pipeline("text-generation", tmp_path / place)(
            "<|endoftext|>A dog", do_sample=False, max_new_tokens=12, return_full_text=False
        )
        assert said.out.removesuffix("\n") == written[0]["generated_text"]


SMALL = settings(
    "model.d_model=16 model.d_ff=32 model.heads=2 model.layers=1 text.vocabulary=320 data.max_tokens=32 "
    "training.precision=fp32 data.validation=20"
)
BERT_SHAPED = settings("model.norm_place=post model.pool=first model.pooler=true")
FILLING = "a runs over the two men sit on is".split()
TOLD = {"dog": "animal", "grass": "plant", "wall": "stone"}


def drawn(seed: int, told: str) -> str:
    """A few words, one of which tells."""
    draw = random.Random(seed)
    words = [*draw.choices(FILLING, k=5), told]
    return " ".join(draw.sample(words, len(words)))


def labelled(path: Path) -> Path:
    """Texts of which one word tells the label, but for every tenth."""
    draw, rows = random.Random(3), []
    for number in range(120):
        told = draw.choice(list(TOLD))
        label = draw.choice(list(TOLD.values())) if number % 10 == 9 else TOLD[told]
        rows.append(f"{drawn(number, told)},{label}\n")
    path.write_text("text,label\n" + "".join(rows))
    return path


def taught(folder: Path, regard: Run, *more: object, task: str = "classification", steps: int = 30) -> Any:
    given = ["--task", task, "--train", folder / "a.csv", "--output", folder / "model", "--steps", steps]
    done = regard("train", *given, "--threads", 1, "--set", "training.rate=0.01", *more)
    assert done.code == 0, done.err
    return done


def test_a_classifier_taught_here_says_the_same_there(tmp_path: Path, regard: Run) -> None:
    labelled(tmp_path / "a.csv")
    taught(tmp_path, regard, *SMALL, *BERT_SHAPED)
    assert json.loads((tmp_path / "model" / "labels.json").read_text())["temperature"] != 1.0
    assert regard("export", tmp_path / "model", tmp_path / "out").code == 0
    lines = regard("classify", tmp_path / "model", "--all", stdin=GIVEN).out.splitlines()
    said = pipeline("text-classification", tmp_path / "out")(TEXTS, top_k=None)
    for line, one in zip(lines, said, strict=True):
        expected = {each["label"]: each["score"] for each in one}
        assert json.loads(line)["probabilities"] == pytest.approx(expected, abs=2e-6)
    assert regard("import", tmp_path / "out", tmp_path / "again").code == 0
    again = regard("classify", tmp_path / "again", "--all", stdin=GIVEN).out.splitlines()
    for line, one in zip(lines, again, strict=True):
        assert json.loads(one)["probabilities"] == pytest.approx(json.loads(line)["probabilities"], abs=2e-6)


def test_a_translator_taught_here_comes_back(world: Path, train_options: Any, regard: Run) -> None:
    done = regard(*train_options(world, world / "post", 2), "--set", "model.norm_place=post")
    assert done.code == 0, done.err
    assert "this model can be exported to: Hugging Face (Marian), CTranslate2\n" in done.err
    for name in ("model", "post"):
        assert regard("export", world / name, world / "out" / name).code == 0
        done = regard("import", world / "out" / name, world / "again" / name)
        assert f"regard translate {world / 'again' / name}" in done.out
        before, after = (regard_package.load(folder / name) for folder in (world, world / "again"))
        texts = [*TEXTS, "the cat sees the dog", "the old woman loves the green snake"]
        assert after.nbest(texts, 2, max_extra=5) == before.nbest(texts, 2, max_extra=5)
        assert after.recipe.model == before.recipe.model
        assert (after.recipe.text.source_language, after.recipe.text.target_language) == ("en", "de")


def test_a_classifier_of_another_make_is_refused_by_its_field(tmp_path: Path, regard: Run) -> None:
    labelled(tmp_path / "a.csv")
    said = taught(tmp_path, regard, *SMALL, steps=2).err
    assert "this model cannot be exported as it is: BERT needs model.norm_place = post instead of pre, " in said
    done = regard("export", tmp_path / "model", tmp_path / "out")
    assert done.code == 2
    assert done.sentence.startswith("regard: model.norm_place: BERT has no form for 'pre', only for post")
    assert not (tmp_path / "out").exists()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_a_classifier_begun_from_an_encoder_of_others(kind: str, tmp_path: Path, regard: Run) -> None:
    there_and_back(kind, tmp_path, regard)
    labelled(tmp_path / "a.csv")
    taught(tmp_path, regard, "--from", tmp_path / "ours")
    task = regard_package.load(tmp_path / "model")
    assert task.recipe.data.max_tokens == task.recipe.model.max_positions == 40  # no longer than it has places for
    before = regard_package.load(tmp_path / "ours")
    assert task.assets.tokenizer.sha256 == before.assets.tokenizer.sha256
    assert regard("export", tmp_path / "model", tmp_path / "out").code == 0
    for text, said in zip(TEXTS, pipeline("text-classification", tmp_path / "out")(TEXTS), strict=True):
        found = task.classify(text)
        assert (found.label, found.probability) == (said["label"], pytest.approx(said["score"], abs=2e-6))


def test_a_tagger_begun_from_an_encoder_of_others(tmp_path: Path, regard: Run) -> None:
    there_and_back("BertModel", tmp_path, regard)
    kinds = dict.fromkeys(TOLD, "NOUN") | dict.fromkeys(FILLING, "OTHER")
    texts = [drawn(number, list(TOLD)[number % 3]).split() for number in range(60)]
    rows = ["".join(f"{word}\t{kinds[word]}\n" for word in text) for text in texts]
    (tmp_path / "a.conll").write_text("\n".join(rows))
    given = ["--task", "tagging", "--train", tmp_path / "a.conll", "--from", tmp_path / "ours", "--steps", 30]
    done = regard("train", *given, "--output", tmp_path / "model", "--threads", 1, "--set", "training.rate=0.01")
    assert done.code == 0, done.err
    assert regard_package.load(tmp_path / "model").assets.labels == ("NOUN", "OTHER")
    assert regard("export", tmp_path / "model", tmp_path / "out").code == 0
    same_tags(tmp_path / "model", tmp_path / "out", [" ".join(text) for text in texts[:9]] + TEXTS, regard)


def test_masked_words_taught_further(tmp_path: Path, regard: Run) -> None:
    there_and_back("BertForMaskedLM", tmp_path, regard)
    texts = [f"{drawn(number, list(TOLD)[number % 3])} green\n\n" for number in range(80)]
    (tmp_path / "a.csv").write_text("".join(texts))
    taught(tmp_path, regard, "--from", tmp_path / "ours", "--set", "data.documents=paragraph", task="masked-lm")
    done = regard("fill", tmp_path / "model", "-k", 1, stdin=b"two men sit on a dog [MASK]")
    assert done.out.split("\t")[1] == "green"
    assert regard("export", tmp_path / "model", tmp_path / "out").code == 0


def test_what_is_wrong_is_one_sentence(tmp_path: Path, regard: Run) -> None:
    done = regard("import", tmp_path / "absent", tmp_path / "ours")
    assert (done.code, done.sentence) == (1, f"regard: {tmp_path / 'absent'}: no such folder")
    folder_of("BertModel", tmp_path / "theirs")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "thesis.txt").write_text("years")
    done = regard("import", tmp_path / "theirs", tmp_path / "ours")
    assert done.sentence == f"regard: {tmp_path / 'ours'}: holds something already; name a new folder"
    assert [path.name for path in (tmp_path / "ours").iterdir()] == ["thesis.txt"]
    done = regard("train", "--task", "encoding", "--train", tmp_path / "a.csv", "--output", tmp_path / "new")
    assert done.code == 2
    assert "encoding is for encoders that regard import brings in" in done.sentence
    done = regard("export", tmp_path / "theirs", tmp_path / "out")
    assert "is no model folder" in done.sentence
    done = regard("export", tmp_path / "ours", tmp_path / "out", "--to", "onnx")
    assert done.code == 2


def test_missing_spans(tmp_path: Path, regard: Run) -> None:
    """What is written is what theirs writes, the symbols that ours never writes suppressed there too."""
    text = "a dog <extra_id_0> over the <extra_id_1> grass."
    peer, tokenizer = there_and_back("T5ForConditionalGeneration", tmp_path, regard)
    task = regard_package.TextToText.load(tmp_path / "ours", device="cpu")
    options = {"num_beams": 1, "do_sample": False, "max_new_tokens": 30, "suppress_tokens": list(task.symbols.without)}
    written = peer.eval().generate(**tokenizer(text, return_tensors="pt"), **options)[0, 1:].tolist()
    ours = list(task.nbest([text], 1, 1)[0][0].tokens)
    assert ours[:29] == written[: written.index(1) if 1 in written else None][:29]
    done = regard("ask", tmp_path / "ours", "--beam", "1", stdin=text.encode())
    assert done.out == f"{task.ask(text, beam=1)}\n"
