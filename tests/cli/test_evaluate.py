"""What ``regard evaluate`` says beside its scores."""

from pathlib import Path

from regard.tasks.metrics import score


class Echo:
    """A task whose translation of a text is the text."""

    name = "translation"

    def evaluate(self, sources, references, beam=None, lowercase=False):
        return score(sources, references, lowercase=lowercase, samples=1)


def test_lines_that_are_not_utf8_are_named_with_their_file(tmp_path: Path, regard, loaded) -> None:
    loaded(Echo())
    (tmp_path / "a").write_bytes(b"one small house stands\n\xff two\n")
    (tmp_path / "b").write_bytes(b"one small house stands\ntwo\n")
    done = regard("evaluate", "model", "--source", tmp_path / "a", "--reference", tmp_path / "b")
    assert done.code == 0
    assert f"{tmp_path / 'a'}: 1 line was not valid UTF-8 and had bytes replaced: 2" in done.err
    assert str(tmp_path / "b") not in done.err
    assert done.out.startswith("BLEU")
