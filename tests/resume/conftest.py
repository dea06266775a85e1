"""Lets these tests share one toy task, and one small run of the whole."""

import random

import pytest
import torch

from regard.training.checkpoints.files import Files


@pytest.fixture(autouse=True)
def one_thread():
    """The children these tests fork must not meet a pool of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def counted():
    """Every file operation of a process is counted by ``small_runs``."""
    from tests.resume.small_runs import before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Files, "before", before)
        patch.setattr(Files, "sync", lambda files, handle: None)  # only a machine without power loses by that
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
    from tests.resume.small_runs import SEEN, results, train
    from tests.training.toy import in_child

    output = tmp_path_factory.mktemp("never") / "model"

    def work():
        SEEN.clear()
        train(corpus, output)
        (output.parent / "seen").write_text("\n".join(SEEN))

    assert in_child(work) == 0
    return results(output), (output.parent / "seen").read_text().splitlines(), output
