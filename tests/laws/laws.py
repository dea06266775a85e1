"""The table of laws: what each says, how exactly it holds, which families it covers, and why others are excepted."""

from dataclasses import dataclass, field

ALL = ("transformer", "rnn", "rnn-encoder", "bert", "gpt", "vit")
WRITING = ("transformer", "rnn", "gpt")


@dataclass(frozen=True)
class Law:
    """One law. ``held`` are the tests that hold it, ``file::function``, from the tests' folder."""

    says: str
    exactness: str
    held: tuple[str, ...]
    families: tuple[str, ...] = ALL
    excepted: dict[str, str] = field(default_factory=dict)
    """Families it does not cover, and parts of a covered family that it does not reach, each with its reason."""


READING = dict.fromkeys(("rnn-encoder", "bert", "vit"), "it does not generate")
BITS, WITHIN, MADE = "to the bit", "float64 1e-9, float32 1e-4 of the largest entry", "by construction"

LAWS = {
    "resume": Law(
        "stopped and resumed is never stopped, dropout on, at any step and killed before any file operation",
        BITS,
        ("resume/",),
    ),
    "store": Law("saved and loaded is the same model", BITS, ("laws/test_exact.py::test_store",)),
    "causal": Law(
        "a later token never changes an earlier output, at equal shapes",
        BITS,
        ("laws/test_exact.py::test_causal",),
        families=WRITING,
        excepted={
            "the encoder": "its tokens see the whole sentence by design",
            "bert": "every token sees the whole text by design",
            "rnn-encoder": "where it reads two ways, by design; where one way, tested that no earlier token changes",
            "vit": "every patch sees the whole image by design",
        },
    ),
    "refilling": Law(
        "what a search finds does not depend on which sentences were in the batch beside, or entered and left",
        BITS,
        (
            "laws/test_exact.py::test_refilling",
            "laws/test_exact.py::test_samples_do_not_depend_on_their_company",
            "models/decoding/test_encoder_decoders.py::test_a_sentence_is_translated_alike_in_any_company",
            "engine/test_laws.py::test_what_a_search_finds_depends_on_no_neighbour",
        ),
        families=WRITING,
        excepted={
            "optimised products": "a matrix library may round a row otherwise when the number of rows differs; there "
            "the law is 'neighbours'",
            **READING,
            "a recurrence": "its kernels round by the number of rows; held within 1e-9",
        },
    ),
    "probe": Law(
        "replacing by the identity changes nothing, beside the reference way",
        BITS,
        ("laws/test_exact.py::test_probe", "laws/test_exact.py::test_probe_of_a_step"),
        excepted={"other ways": "a touched layer takes the reference way; there the law is 'ways'"},
    ),
    "neighbours": Law(
        "a sentence alone is the same among others, hidden states and translated tokens",
        WITHIN,
        ("laws/test_within.py::test_neighbours", "laws/test_within.py::test_neighbours_written"),
        excepted={"tokens of near ties": "two candidates within 1e-5 nats may change places; such cases are counted"},
    ),
    "state": Law(
        "step by step is all at once",
        WITHIN,
        (
            "laws/test_within.py::test_state",
            "laws/test_within.py::test_state_behind_a_prompt",
            "engine/test_laws.py::test_step_by_step_is_all_at_once",
            "engine/test_transformer.py::test_every_step_is_that_of_the_model",
        ),
        families=WRITING,
        excepted=READING,
    ),
    "ways": Law(
        "every way of attention is the reference way, forward and gradient",
        WITHIN,
        (
            "laws/test_ways.py::test_ways",
            "laws/test_ways.py::test_ways_of_a_recurrence",
            "nn/attention/test_backends.py::test_varlen_equals_the_reference_on_a_gpu",
        ),
        excepted={"varlen": "it computes in half precision on a GPU: 2 % of the largest entry, tested there"},
    ),
    "order": Law(
        "without positions the encoder commutes with any permutation of a sentence's tokens",
        WITHIN,
        ("laws/test_within.py::test_order", "laws/test_within.py::test_order_behind_the_mask"),
        families=("transformer", "bert", "gpt", "vit"),
        excepted={
            "sinusoidal and learned positions": "they exist to break it; tested that they do",
            "the decoder": "its causal mask is an order",
            "rnn": "a recurrence is an order; tested that it needs no positions",
            "rnn-encoder": "a recurrence is an order; tested that it needs no positions",
        },
    ),
    "weights": Law(
        "attention weights of a query are not negative and sum to one",
        WITHIN,
        ("laws/test_within.py::test_weights",),
        excepted={"queries without keys": "their context is zero"},
    ),
    "search": Law(
        "a beam of one is greedy; a wide beam is exhaustive",
        MADE,
        (
            "laws/test_search.py::test_search",
            "laws/test_search.py::test_a_beam_of_one_is_greedy",
            "engine/test_laws.py::test_a_wide_beam_is_exhaustive_and_one_of_one_is_greedy",
        ),
        families=WRITING,
        excepted=READING,
    ),
    "text": Law(
        "decoding what was encoded is the normalised text; offsets cover what they claim",
        MADE,
        ("text/",),
    ),
    "gradient": Law(
        "every parameter receives a finite gradient that is not zero",
        MADE,
        ("laws/test_within.py::test_gradient",),
        excepted={
            "biases of keys": "they add the same to all scores of a query, which the softmax does not see",
            "the start symbol's row": "it is zero by definition and never learned",
        },
    ),
}
