"""The sections of a recipe other than ``model``, and their base: frozen fields with default, unit and reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

FORMAT = 1
"""Version of every file we write; a newer one is refused with a sentence."""
Uses = dict[str, tuple[int, int]]
"""Encoder, decoder, cross [Vaswani17 §3.2.3] or pool, the uses of attention, to how many layers and heads."""


class Section(BaseModel):
    """A frozen group of recipe fields; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def deciding(self) -> dict[str, object]:
        """Fields and values that can decide anything.

        Those that are ``only`` for a choice of another field decide with it, those ``only_if_set`` unless they are
        as before there was such a field. A run that was begun before Regard had such a field thus resumes.
        """

        def decides(name: str) -> bool:
            field = type(self).model_fields[name]
            extra = field.json_schema_extra
            if not isinstance(extra, dict):
                return True
            only = extra.get("only")
            held = not isinstance(only, dict) or all(getattr(self, other) == word for other, word in only.items())
            return held and not (extra.get("only_if_set") and getattr(self, name) == field.default)

        return {name: value for name, value in self.model_dump().items() if decides(name)}

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, values: object) -> object:
        for name, value in values.items() if isinstance(values, Mapping) else ():
            field = cls.model_fields.get(name)
            if isinstance(value, bool) and field and bool not in (field.annotation, *get_args(field.annotation)):
                raise ValueError(f"{name} is no question of true or false")
        return values


def only_if_set(description: str, default: object = None, **bounds: float) -> Any:
    """A field that decides only where it is set."""
    return Field(default, description=description, json_schema_extra={"only_if_set": True}, **bounds)  # type: ignore[call-overload]


AlignmentName = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,2}(\.[1-9][0-9]{0,2})? (predicts|reads)$")]
"""A head of cross-attention, or the mean of a layer, in one of two steps."""
LANGUAGE = r"^[A-Za-z0-9_.@-]{1,40}$"
"""Pattern of a language code, which is displayed and may become part of a file name."""


class Text(Section):
    """Tokenization [Sennrich16]: byte-level BPE, lossless."""

    vocabulary: int = Field(8000, ge=300, le=1_000_000, description="pieces, the symbols included")
    extend_vocabulary: int = only_if_set(
        "translation from another model: at most so many pieces more, learned from the new text", 0, ge=0, le=100_000
    )
    joint: bool = Field(True, description="one vocabulary for both languages (needed for three-way tying)")
    units: Literal["pieces", "characters"] = Field("pieces", description="pieces: learned byte pairs; or characters")
    normalisation: Literal["none", "nfc", "nfkc"] = Field("nfc", description="Unicode normalisation before encoding")
    lowercase: bool = Field(False, description="text is lower-cased before encoding")
    sample: int = Field(1_000_000, ge=1, description="pairs drawn (seeded) to learn the vocabulary from")
    bpe_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="probability of leaving a merge out while training")
    segmentations: int = Field(16, ge=1, le=64, description="segmentations drawn per distinct word for BPE-dropout")
    tags: float = only_if_set(
        "translation: share of the pairs that learn to carry inline tags, by signs behind aligned words",
        0.0,
        ge=0.0,
        le=1.0,
    )
    source_language: str = Field("und", pattern=LANGUAGE, description="language code of the source; und = unknown")
    target_language: str = Field("und", pattern=LANGUAGE, description="language code of the target; und = unknown")


class Data(Section):
    """Training data, and how batches are packed."""

    max_tokens: int = Field(256, ge=2, description="pairs longer than this on a side are left out, counted and named")
    validation: int = Field(
        1000, ge=1, description="pairs split off (seeded), at most a tenth, when no validation files are given"
    )
    documents: Literal["file", "paragraph", "line"] = Field(
        "file", description="running text: what is one document; paragraphs stand between empty lines"
    )
    word_dropout: float = Field(
        0.0, ge=0.0, lt=1.0, description="share of the tokens that a classifier of texts reads as [MASK] while training"
    )
    weights: tuple[float, ...] = Field((), description="translation only: one weight per corpus; empty = by size")
    temperature: float | None = only_if_set(
        "translation of several languages: a direction of n pairs is drawn by n to the power of 1/T, which evens out "
        "large and small ones [Fan21]; default: by size, as T = 1",
        ge=1.0,
    )
    epoch: int = Field(0, ge=0, description="draws of a virtual epoch of weighted corpora; 0 = all pairs")
    look_ahead: int = Field(
        64, ge=1, le=1_000_000, description="sentences waiting to fill the gap at the end of a batch"
    )


Product = Literal["exact", "onednn", "bf16"]
"""How matrix products are computed: the paths of ``nn/ops.py``."""
PRECISION_OF = {"exact": "fp32", "onednn": "fp32", "bf16": "mixed"}
"""The precision of each path of products."""


class Training(Section):
    """Training: steps, optimiser, schedule, checkpoints [Vaswani17 §5]."""

    steps: int | None = Field(None, ge=1, description="updates; default: from --minutes, else a table by corpus size")
    minutes: float | None = Field(None, gt=0, description="wall minutes from first step to saved model; fixes steps")
    tokens: int = Field(1024, ge=16, description="target tokens of a packed batch; 1,024 suits small corpora")
    accumulate: int = Field(1, ge=1, le=100_000, description="batches per update")
    shards: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="parts of every batch, a power of two, each computed by one thread; processes divide them and do "
        "not change the weights; default: by training.tokens",
    )
    optimiser: Literal["adam", "adamw", "muon"] = Field(
        "adam",
        description="adamw: weight decay apart from the gradient; muon: orthogonal updates of the layers' matrices "
        "[Jordan24], adamw for the rest",
    )
    beta1: float = Field(0.9, ge=0.0, lt=1.0, description="decay of the mean of gradients")
    beta2: float = Field(0.98, ge=0.0, lt=1.0, description="decay of the mean of squared gradients")
    epsilon: float = Field(1e-9, gt=0.0, description="added to the root of the mean squared gradient")
    weight_decay: float = Field(0.0, ge=0.0, description="applied to weights, not to biases and norms; not with adam")
    schedule: Literal["noam", "inverse_square_root", "cosine", "linear"] = Field(
        "cosine", description="decay of the learning rate after warm-up"
    )
    rate: float = Field(2e-3, gt=0.0, description="peak rate; for noam a factor of the paper's formula")
    warmup: int = Field(
        400, ge=0, description="steps of linear warm-up; never more than a tenth of the steps if they are known"
    )
    clip: float = Field(1.0, ge=0.0, description="largest gradient norm; 0 = no clipping")
    label_smoothing: float = Field(0.1, ge=0.0, lt=1.0, description="probability mass given to all other pieces")
    guided_alignment: float = only_if_set(
        "translation: how much the loss counts by which one head learns to attend to the words that a lexical model, "
        "learned from the pairs before, aligns [Garg19]; 0.05 in the paper; 0 = none",
        0.0,
        ge=0.0,
        le=100.0,
    )
    precision: Literal["auto", "fp32", "mixed"] = Field(
        "auto",
        description="mixed: products in bf16, weights and residual stream in fp32; auto: whichever trains faster here",
    )
    product: Literal["auto"] | Product = Field(
        "auto",
        description="how products are computed (nn/ops.py); auto: as precision says, measured at the first start",
    )
    ema: float = Field(0.0, ge=0.0, lt=1.0, description="decay of averaged weights; 0 = off; validated and saved if on")
    validate_every: int | None = Field(None, ge=1, description="steps; default: a twentieth of the run")
    save_every: int | None = Field(None, ge=1, description="steps; default: with each validation")
    keep: int = Field(3, ge=2, description="newest checkpoints kept")
    select: Literal["auto", "last", "loss", "bleu", "chrf", "exact", "accuracy", "f1"] = Field(
        "auto",
        description="metric that selects the saved weights; auto: the task's own score, or in the first "
        "half of a translation run the loss; last: the weights of the last validation (for runs of known length |"
        "with a small data.validation)",
    )
    patience: int | None = Field(
        None, ge=1, description="validations without improvement before stopping; only for noam and inverse_square_root"
    )
    validation_sentences: int = Field(500, ge=1, description="sentences translated (greedily) at a validation")
    max_skipped: int = Field(
        10,
        ge=1,
        description="non-finite updates in a row before training stops; more than 10 within 1,000 steps stop it too",
    )

    @property
    def shard_tokens(self) -> int:
        """Target tokens of a shard of a batch; of all of it where there are none."""
        return -(-self.tokens // (self.shards or 1))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.shards and self.shards & (self.shards - 1):
            raise ValueError(f"shards = {self.shards} is not a power of two")
        if self.product != "auto" and self.precision not in ("auto", precision := PRECISION_OF[self.product]):
            raise ValueError(f"product = {self.product!r} is of precision {precision!r}, not {self.precision!r}")
        return self


Projection = Literal["query", "key", "value", "output", "feedforward", "recurrence"]
"""Linear projections of a layer, as :attr:`Adapt.projections` names them; recurrence: those of an SSRU."""
Part = Literal["encoder", "decoder", "embeddings", "norms", "biases", "head"]
"""Parts of a model; encoder and decoder are their layers, embeddings those of positions and a table of outputs too."""


class Adapt(Section):
    """Going on from another model (--from): low-rank adaptation (LoRA) [Hu21], or parts that stay as they are."""

    rank: int = only_if_set("r of the factors in W + (alpha / r) B A, which alone are trained; 0 = no LoRA", 0, ge=0)
    alpha: float | None = only_if_set("rank: how much the factors count; default: twice the rank", gt=0)
    projections: tuple[Projection, ...] = only_if_set(
        "rank: the projections that are adapted; query and value are the paper's choice", ("query", "value")
    )
    whole: tuple[Part, ...] = only_if_set(
        "rank: parts that are trained and saved whole beside the factors; new heads always are", ()
    )
    freeze: tuple[Part, ...] = only_if_set("without rank: parts that are not trained", ())

    @property
    def scale(self) -> float:
        """What the product of the factors is multiplied by: alpha / r."""
        return 2.0 if self.alpha is None else self.alpha / self.rank

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.rank and self.freeze:
            raise ValueError("freeze is for adapt.rank = 0; with a rank all is frozen but the factors and adapt.whole")
        if not self.rank and self.deciding().keys() - {"freeze"}:
            raise ValueError(f"{min(self.deciding().keys() - {'freeze'})} needs adapt.rank; 8 is usual")
        if self.rank and not self.projections:
            raise ValueError("projections is empty: there is nothing to adapt")
        return self


class Decoding(Section):
    """Decoding: beam search and sampling [Vaswani17 §6.1]."""

    beam: int = Field(5, ge=1, le=100, description="hypotheses kept; 1 is greedy")
    refill: bool = only_if_set(
        "a hypothesis that ends leaves its place in the beam to the next best, as in fairseq, transformers and "
        "CTranslate2; else the beam becomes narrower [Wu16]",
        False,
    )
    shortlist: bool = only_if_set(
        "a translation is of the pieces that the model's list of likely ones has for its source, and is found sooner; "
        "for models that were imported with such a list, lex.*.bin, beside them",
        False,
    )
    length_penalty: float = Field(1.0, ge=0.0, le=10.0, description="alpha of ((5 + length) / 6) ** alpha [Wu16]")
    length_penalty_by: Literal["gnmt", "power"] = only_if_set(
        "gnmt: ((5 + length) / 6) ** alpha; power: length ** alpha, as in Marian, CTranslate2 and transformers", "gnmt"
    )
    coverage_penalty: float = only_if_set(
        "beta: how much worse an output is that attends little to some tokens of its source [Wu16]",
        0.0,
        ge=0.0,
        le=10.0,
    )
    stopping: Literal["exact", "first"] = only_if_set(
        "exact: a search ends when nothing can become better than what ended; first: when as many outputs as are "
        "wanted have ended, which is faster and may miss a better one",
        "exact",
    )
    max_extra: int = Field(50, ge=1, le=10_000, description="an output is at most the source + this many tokens")
    min_length: int = only_if_set("tokens that an output has at least", 0, ge=0, le=10_000)
    max_length: int | None = only_if_set("tokens that an output has at most, its end counted", ge=1, le=10_000)
    min_share: float = only_if_set(
        "the same in source tokens: an output has at least this many times as many", 0.0, ge=0.0, le=10.0
    )
    max_share: float | None = only_if_set(
        "the same in source tokens: an output has at most this many times as many", gt=0.0, le=10.0
    )
    no_repeat_ngram: int = only_if_set(
        "no sequence of so many tokens occurs twice in an output; 0: any may", 0, ge=0, le=100
    )
    suppress: tuple[int | str, ...] = only_if_set(
        "tokens that are never produced: pieces as `--json` has them (a space is ▁), or their numbers", ()
    )
    term_bonus: float = only_if_set(
        "a search for outputs that rather contain given terms: what the log-probability of an output is raised by for "
        "each token of a term that it has; 0: they contain them",
        0.0,
        ge=0.0,
        le=100.0,
    )
    groups: int = only_if_set(
        "the beam is divided into so many groups, each of which keeps away from the tokens of those before it "
        "[Vijayakumar18]; 1: it is not",
        1,
        ge=1,
        le=100,
    )
    diversity: float = only_if_set(
        "groups: a log-probability falls by it for each row of the groups before that takes the token at this step",
        0.5,
        ge=0.0,
        le=100.0,
    )
    distinct: bool = only_if_set(
        "several outputs of a search differ in more than case, punctuation and spaces; the beam becomes wider for "
        "texts where it has too few such",
        False,
    )
    utility: Literal["chrf", "bleu"] = only_if_set("minimum Bayes risk: what outputs are compared by", "chrf")
    reverse_weight: float = only_if_set(
        "what the log-probability by a model of the reverse direction counts beside a model's own",
        0.5,
        ge=0.0,
        le=100.0,
    )
    tokens: int = Field(8192, ge=16, description="source tokens times beam decoded at once")
    alignment_heads: tuple[AlignmentName, ...] = only_if_set(
        'the heads of cross-attention whose mean aligns words, as "2.4 predicts" or "3.1 reads": layer and head of the '
        "decoder, from 1, in the step that predicts a word or the one that reads it; without a head the mean of the "
        "layer; regard align --tune chooses them; empty: the mean of all layers, predicts",
        (),
    )
    temperature: float = Field(1.0, ge=0.0, le=100.0, description="sampling: scores are divided by it; 0 is greedy")
    top_k: int = Field(0, ge=0, description="sampling: only the k most probable pieces; 0: all")
    top_p: float = Field(1.0, gt=0.0, le=1.0, description="sampling: nucleus of this probability")
    min_p: float = Field(
        0.0, ge=0.0, lt=1.0, description="sampling: pieces of at least this share of the largest probability"
    )
    typical: float = Field(1.0, gt=0.0, le=1.0, description="sampling: locally typical pieces of this probability")
    repetition_penalty: float = Field(
        1.0,
        ge=1.0,
        le=10.0,
        description="pieces that occurred before: their log-probabilities are multiplied by it; of samples, positive "
        "scores are divided",
    )

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if self.coverage_penalty and self.term_bonus:
            raise ValueError("term_bonus is taken off a score again, and coverage_penalty with it; leave one out")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} is above max_length {self.max_length}; change one of them")
        return self


_OF_SPANS: JsonDict = {"only": {"spans": True}}


class TextToTextSection(Section):
    """Several tasks in one model, which reads a prefix and a text and writes a text."""

    spans: bool = Field(
        False,
        description="running text is learned from, in place of pairs: some spans of it are missing from what is read, "
        "and are what is to be written [Raffel20 §3.1.4]",
        json_schema_extra=_OF_SPANS,
    )
    span_share: float = Field(
        0.15, gt=0.0, lt=1.0, description="spans: share of the tokens that are missing", json_schema_extra=_OF_SPANS
    )
    span_length: float = Field(
        3.0, ge=1.0, le=100.0, description="spans: mean length of one, in tokens", json_schema_extra=_OF_SPANS
    )


class Classification(Section):
    """A label for each text: one of several, any of several, or a number."""

    kind: Literal["single", "multi", "regression"] = Field(
        "single", description="single: one label per text; multi: any number of labels; regression: a number"
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="balanced: rare labels weigh as much in the loss as frequent ones"
    )
    adversarial: float = Field(
        0.0,
        ge=0.0,
        le=100.0,
        description="adversarial training: a second pass with the embeddings of what is read perturbed along the "
        "gradient; the norm in embedding norms; training takes about three times as long",
    )
    ngrams: bool | None = only_if_set(
        "what a linear classifier of hashed word and character n-grams says is added to the scores; it is fitted "
        "before training, in seconds, and how much it counts on the validation texts"
    )
    out_of_scope: str = Field("", description="label of texts that belong to no class, if the data has one")
    threshold: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="a text whose best label is less probable is out of scope; 0: tuned at the "
        "end if the validation texts have the label out_of_scope, else off",
    )
    threshold_by: Literal["balanced", "accuracy", "f1"] = Field(
        "balanced",
        description="metric that tunes the threshold; balanced: the mean of accuracy in scope and recall out of scope, "
        "whatever their counts; accuracy: of all texts; f1: of out of scope",
    )
    calibrate: bool = Field(
        True,
        description="probabilities are fitted to the validation texts by one temperature, numbers by a factor "
        "and a shift",
    )


class Images(Section):
    """Image augmentation during training."""

    shift: int = Field(
        0, ge=0, le=1024, description="random shift of an image by up to this many pixels; below its shorter side"
    )
    warp: float = Field(
        0.0,
        ge=0.0,
        lt=1.0,
        description="random rotation, shear and stretch of an image: the entries of the linear map "
        "change by up to this much; 0.1 turns by up to 6 degrees",
    )


class Tagging(Section):
    """A tag for each word; or entities, which are spans of words."""

    scheme: Literal["auto", "none", "io", "bio", "bilou"] = Field(
        "auto", description="how spans become tags; none: each word has a tag of its own; auto: detected in the data"
    )
    crf: bool = Field(False, description="tags are scored as whole sequences by a conditional random field")
    stride: int = Field(64, ge=1, description="tokens shared by neighbouring windows of a long text")


class Masking(Section):
    """Masking of tokens [Devlin19 §3.1]."""

    share: float = Field(0.15, gt=0.0, lt=1.0, description="share of the tokens that are hidden")
    mask: float = Field(0.8, ge=0.0, le=1.0, description="share of these replaced by [MASK]")
    random: float = Field(0.1, ge=0.0, le=1.0, description="share of these replaced by a random piece; the rest stays")
    whole_words: bool = Field(True, description="all pieces of a word are hidden together")

    @model_validator(mode="after")
    def _shares(self) -> Masking:
        if self.mask + self.random > 1.0:
            raise ValueError(f"mask {self.mask} and random {self.random} are together more than 1")
        return self


class Encoding(Section):
    """A vector for each text, by an imported encoder; pooled by ``model.pool``."""

    normalise: bool = Field(False, description="a text's vector gets length one, so that products are cosines")
