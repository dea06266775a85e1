"""Every public name of Regard in one typed program.

python examples/library.py MODEL TEXT [FOLDER]             what a model says, looks at, and rests on
python examples/library.py --train SOURCE TARGET FOLDER    a translator of two files of sentences
python examples/library.py --page MODEL                    the page, in the browser of this machine
python examples/library.py --fit                           a line through points, as a model of one's own

TEXT is a line of pixel values for a model of images, and has a gap, [MASK], for a model that fills gaps. Pictures go to
FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import regard


def answer(model: regard.Model, text: str) -> str:
    """What a model of any task says of a text."""
    if isinstance(model, regard.Translator):
        return model.translate(text)
    if isinstance(model, regard.TextToText):
        return model.ask(text)  # TEXT begins with its prefix
    if isinstance(model, regard.Classifier | regard.ImageClassifier):
        return model.classify(text).label
    if isinstance(model, regard.PairClassifier):
        return model.classify(text).label  # TEXT holds both, [SEP] between them
    if isinstance(model, regard.Tagger):
        tagged = model.tag(text)
        return " ".join(f"{word}/{tag}" for word, tag in zip(tagged.words, tagged.tags, strict=True))
    if isinstance(model, regard.LanguageModel):
        return model.generate(text, max_tokens=20)[0].text
    if isinstance(model, regard.MaskedLm):
        return model.fill(text)[0][0].text
    if isinstance(model, regard.TextEncoder):
        return f"a vector of {model.encode(text).size} numbers"
    raise TypeError(type(model).__name__)


def sharpest_head(attention: regard.Attention) -> tuple[int, int]:
    """The layer and the number, from 1, of the head whose queries look at the fewest tokens."""
    entropy_LH = attention.entropy().mean(axis=2)
    layer, head = divmod(int(entropy_LH.argmin()), entropy_LH.shape[1])
    return layer + 1, head + 1


def strongest(shares: regard.TokenShares, count: int = 3) -> str:
    """The tokens that contribute most, for or against."""
    labels: regard.TokenLabels = shares.labels
    order = abs(shares.shares).argsort()[::-1][:count]
    return ", ".join(f"{labels.tokens[place]} {shares.shares[place]:+.3f}" for place in order)


def functions(model: regard.Model, texts: list[str]) -> str:
    """What heads do over many texts: each with a function, its share and its interval."""
    table: regard.HeadTable = model.heads(texts)
    heads: list[regard.HeadSummary] = [head for head in table if head.function is not None]
    told = []
    for head in heads:
        share: regard.Estimate = head.estimates[head.function or ""]
        told.append(
            f"{head.kind} {head.layer}·{head.head} {head.label}: {share.mean:.0%} ({share.low:.0%}–{share.high:.0%})"
        )
    return "\n".join([repr(table), *told])


def explain(model: regard.Model, text: str, folder: Path) -> None:
    """What a model looks at, and what its output rests on; pictures go to a folder."""
    attention = model.attention(text)
    layer, head = sharpest_head(attention)
    print(f"{attention!r}\nsharpest: {attention.kind} head {layer}·{head}")
    picture: regard.Figure = attention.plot(layer=layer, head=head)
    print(f"wrote {picture.save(folder / 'head.svg')}")
    (folder / "attention.html").write_text(attention.page(), encoding="utf-8")
    if attention.kind in ("encoder", "decoder"):
        print(f"rollout from the first token: {attention.rollout()[:, 0].round(3).tolist()}")
    points = [point for point in regard.probe.points(model) if point.endswith(".weight")]
    with regard.probe.capture(model, points) as passed:
        answer(model, text)
    print(f"attention passed {sum(len(one.tensors) for one in passed.values())} times")
    changed = model.without(heads=[(attention.kind, layer, head)])
    print(f"without it: {answer(changed, text)}")
    if not isinstance(model, regard.ImageClassifier):
        print(functions(model, [text]))
    if isinstance(model, regard.TextEncoder):
        return
    word = 1 if isinstance(model, regard.Tagger) else None
    found: regard.Attribution = model.attribute(text, word=word, method="integrated_gradients", passes=100)
    print(f"{found.output!r} rests on {strongest(found.source)}")


def show(model: regard.Model) -> None:
    """Serve the page until Enter is pressed."""
    page: regard.Page = regard.explore(model)
    with page:
        input(f"The page is at {page.url}; Enter ends it")


class Line(nn.Module):
    """A model of one's own; examples/own_model.py has one with attention."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Linear(1, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = ((self.slope(x) - y) ** 2).mean()
        return loss


def fit_line() -> float:
    """The slope of a line through points of y = 2 x."""
    x = torch.linspace(-1, 1, 20)[:, None]
    return regard.fit(Line(), [(x, 2 * x)], steps=100, rate=0.1, quiet=True).slope.weight.item()


def main(arguments: list[str]) -> int:
    """Run the program; the exit code."""
    try:
        if arguments == ["--fit"]:
            print(f"slope: {fit_line():.2f}")
            return 0
        if arguments[:1] == ["--page"] and len(arguments) == 2:
            show(regard.load(arguments[1]))
            return 0
        if arguments[:1] == ["--train"] and len(arguments) == 4:
            model = regard.train(source=arguments[1], target=arguments[2], output=arguments[3])
        elif len(arguments) in (2, 3):
            model = regard.load(arguments[0])
        else:
            print(__doc__, file=sys.stderr)
            return 2
        print(f"regard {regard.__version__}\n{model!r}")
        if arguments[0] != "--train":
            folder = Path(*arguments[2:])
            folder.mkdir(parents=True, exist_ok=True)
            print(answer(model, arguments[1]))
            explain(model, arguments[1], folder)
    except regard.RegardError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
