"""Lets these tests share one toy task, and one small run of the whole."""

import random

import pytest

from regard.training.checkpoints.files import Files
from tests.training.conftest import one_thread  # noqa: F401


@pytest.fixture(scope="session", autouse=True)
def _loaded():
    """What a training loads late is there before processes are forked: each would load it anew."""
    for name in ("sacrebleu", "sklearn.svm", "sklearn.feature_extraction.text", "sklearn.pipeline"):
        pytest.importorskip(name)


@pytest.fixture(scope="module")
def counted():
    """Every file operation of a process is counted by ``small_runs``."""
    from tests.resume.small_runs import before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Files, "before", before)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder, generator = tmp_path_factory.mktemp("corpus"), random.Random(5)
    words = ["red", "green", "small", "house", "tree", "dog", "runs", "near"]
    chosen = [generator.choices(words, k=generator.randrange(2, 7)) for _ in range(50)]
    (folder / "a.en").write_text("".join(f"{' '.join(line)}\n" for line in chosen))
    (folder / "a.de").write_text("".join(f"{' '.join(word + 'en' for word in reversed(line))}\n" for line in chosen))
    return folder


@pytest.fixture(scope="module")
def never(corpus, counted, tmp_path_factory):
    """What the run that is never killed leaves, its file operations in order, and its folder."""
    from tests.resume.small_runs import operations, results, train

    output = tmp_path_factory.mktemp("never") / "model"
    seen = operations(lambda output: train(corpus, output), output)
    return results(output), seen, output
