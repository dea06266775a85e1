"""Usage examples at the end of each command's help."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "train": (
        "regard train --source train.en --target train.de --output model",
        "regard train --task classification --train labelled.csv --output model",
        "regard train --task language-model --train book.txt --minutes 10 --output m",
    ),
    "translate": (
        'regard translate model "A man sleeps." "Two dogs run."',
        "regard translate model --input in.txt.gz --output out.txt",
        "regard translate model --beam 5 --nbest 3 < in.txt",
    ),
    "classify": (
        'regard classify model "What a day!" "Never again."',
        "regard classify model --input texts.txt --output labels.tsv",
        "regard classify model --all < texts.txt",
    ),
    "tag": (
        'regard tag model "Ada was born in London."',
        "regard tag model --input texts.txt --output tagged.conll",
        "regard tag model --json < texts.txt",
    ),
    "generate": (
        'regard generate model "Once upon a time" --temperature 0.8',
        "regard generate model --input begun.txt --n 20 --output texts.txt",
        "regard generate model < begun.txt",
    ),
    "fill": (
        'regard fill model "The [MASK] sleeps." -k 3',
        "regard fill model --input gaps.txt --output guesses.tsv",
        "regard fill model --json < gaps.txt",
    ),
    "encode": (
        'regard encode model "A man sleeps."',
        "regard encode model --input texts.txt --output vectors.jsonl",
        "regard encode model --each token --output vectors.npz < texts.txt",
    ),
    "evaluate": (
        "regard evaluate model --source test.en --reference test.de",
        "regard evaluate model --test test.csv",
    ),
    "compare": ("regard compare *.toml --source a.en --target a.de --minutes 5 --output new",),
    "check": (
        "regard check --source train.en --target train.de",
        "regard check --task classification --train labelled.csv --test test.csv",
    ),
    "attend": (
        'regard attend model "The cat sleeps because it is tired." --token it',
        'regard attend model "The cat sleeps." --layer 2 --head 1 --svg cat.svg',
        "regard attend model images.csv --image 3",
    ),
    "explore": ("regard explore model", "regard explore digits --images images.csv --port 8080"),
    "info": ("regard info model", "regard info base"),
    "average": ("regard average model --last 5 --output averaged",),
    "import": ("regard import all-MiniLM-L6-v2 minilm",),
    "export": ("regard export model elsewhere", "regard export model elsewhere --to ctranslate2"),
    "demo": ("regard demo --output demo --threads 1", "regard demo --images --output digits"),
}
BEGIN = ("regard demo", "regard train --source train.en --target train.de --output model")
"""First steps for new users."""


def epilogue(lines: tuple[str, ...], word: str) -> str:
    """The end of a help page in Markdown: shell commands, verbatim."""
    return "\n".join([f"{word}:", "", *(f"    {line}" for line in lines)])
