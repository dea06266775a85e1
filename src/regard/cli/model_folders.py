"""``regard average``, ``import``, ``export``, ``merge``, ``slim``, ``pack``, ``tune``, ``terms``: model folders."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.cli.io.load_model import example, refuse_no_file
from regard.cli.io.terminal import result, result_json, say
from regard.system.errors import UsageError


def import_(
    folder: Annotated[Path, Parameter(name="SOURCE")],
    output: Annotated[Path, Parameter(name="OUTPUT")],
    /,
    *,
    task: str | None = None,
    base: Path | None = None,
) -> None:
    """Bring in a model of others, whose kind is recognised by its files.

    In Hugging Face's layout a translator (Marian, M2M-100, NLLB, mBART), BERT, RoBERTa, XLM-R, DistilBERT, GPT-2, T5 or
    ViT; a translator of CTranslate2, of Argos, or as Marian itself has it: a release of OPUS-MT, or what Firefox
    translates with, a list of likely pieces (lex.*.bin) beside it included. Or a LoRA of PEFT (adapter_config.json),
    which is merged into its base.

    All that regard export writes is read again. What is computed stays the same; a model that would not be the same
    here is refused, and what does not fit is named. Weights are those of model.safetensors or pytorch_model.bin, of
    which nothing is run; nothing is downloaded. What came in is used as it is, or begun from:
    regard train --task classification --train FILE --from OUTPUT --output DIR.

    Args:
        folder: holds config.json, the weights (model.safetensors or pytorch_model.bin) and the tokenizer's files; or
            those of Marian (.npz or .bin, .spm), of CTranslate2 (model.bin), or of a LoRA of PEFT
            (adapter_config.json); or a package of Argos (.argosmodel).
        output: the model folder to make.
        task: what it is to be for, where there is a choice: a translator that was written as a T5 may be for
            text-to-text; default: what the folder says.
        base: of a LoRA of PEFT, the folder in Hugging Face's layout that it adapts; default: the one beside it that it
            names.
    """
    from regard.runs.conversion import import_model

    found = import_model(folder, output, task, base, say)
    result(f"The model is in {output}, for the task {found.name}. To use it:\n\n  {example(found.info, output)}\n")


def export(
    folder: Annotated[Path, Parameter(name="DIR")],
    output: Annotated[Path, Parameter(name="OUTPUT")],
    /,
    *,
    to: Literal["huggingface", "ctranslate2"] = "huggingface",
) -> None:
    """Take a model out: into a folder that transformers reads, or CTranslate2.

    A translator becomes a Marian or, with pre-norm, a Pegasus, or again the M2M-100, NLLB or mBART that it came in as;
    an encoder, of two texts too, a BERT with its head; a language model a GPT-2; a model like T5 a T5; one of images a
    ViT. A model that would not be the same there is refused, and the recipe's fields for which there is no form are
    named: regard train says them before it begins, regard info for a model that is there. What was written for
    transformers, regard import reads again.

    Args:
        folder: the model folder.
        output: the folder to make.
        to: huggingface: config.json, model.safetensors and the tokenizer's files; ctranslate2: a translator as it is,
            another model by CTranslate2's converter (needs the packages ctranslate2 and transformers).
    """
    from regard.runs.conversion import export_model

    for left in export_model(folder, output, to):
        say(left)
    result(f"The model is in {output}.")


def merge(
    folder: Annotated[Path, Parameter(name="ADAPTER")], output: Annotated[Path, Parameter(name="OUTPUT")], /
) -> None:
    """Make an ordinary model folder of an adapter (regard train --from MODEL --set adapt.rank=8) and its base.

    It computes what the adapter computes, and needs neither of the two any more.

    Args:
        folder: of the adapter; its base lies where it lay, seen from there, or beside it.
        output: the model folder to make.
    """
    from regard.runs.model_folders import merge as merging

    merging(folder, output)
    result(f"The merged model is in {output}.")


def average(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    output: Path | None = None,
    last: int | None = None,
    checkpoints: Annotated[list[Path] | None, Parameter(consume_multiple=True)] = None,
) -> None:
    """Average the weights of a run's checkpoints into a new model folder.

    The paper did so with its last five (base) or twenty (big).

    Args:
        folder: the model folder of the run.
        output: the model folder to make; always needed.
        last: number of newest checkpoints to average; default: all that are kept.
        checkpoints: take these checkpoint folders.
    """
    if output is None:
        raise UsageError("say where the averaged model goes: --output DIR")
    if last is not None and checkpoints:
        raise UsageError("give --last or --checkpoints, not both")
    from regard.runs.model_folders import average as averaging

    averaging(folder, output, last, checkpoints or ())
    result(f"The averaged model is in {output}.")


def slim(
    folder: Annotated[Path, Parameter(name="DIR")], /, *, dry_run: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """Remove from a model folder what only its training needed: data, checkpoints, snapshots, log, earlier runs.

    What remains is used: recipe, weights, vocabulary or labels, card and manifest. The model translates, opens on the
    page and is exported as before; its training can no longer be resumed, averaged or watched. What goes is said first,
    with its size, and nothing is asked. A training that is not finished, or at work, is refused.

    Args:
        folder: the model folder.
        dry_run: only say what would go.
    """
    from regard.runs.model_folders import size_of
    from regard.runs.model_folders import slim as slimming

    gone = sum(slimming(folder, say, dry_run).values())
    left = size_of(folder) - (gone if dry_run else 0)
    size = f"{folder} {'would have' if dry_run else 'has'} {left / 1e6:,.1f} MB"
    goes = f"{gone / 1e6:,.1f} MB {'would go' if dry_run else 'are gone'}" if gone else "there is nothing to remove"
    result(f"{size}; {goes}.")


def pack(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    source: Path | None = None,
    reference: Path | None = None,
    precision: Literal["fp32", "bf16", "int8"] | None = None,
    json: bool = False,
) -> None:
    """Measure in which precisions a translator keeps its score, and let translate and ask use the fastest of them.

    The weights stay as they are. Each precision answers the validation data, in turns; one whose BLEU is more than 0.2
    below that of fp32 is used only where it is asked for. The result lies in precisions.json beside the weights, or in
    the user's cache where the folder cannot be written, and counts for these weights alone. Speeds are those of this
    processor: on another kind, measure again. What torch computes, regard evaluate among it, stays fp32.

    Beside it lies packed.safetensors: the weights as the engine reads them, in the precision that is now used. With it
    a start takes less time and memory, and processes that use the model share it. Without it the engine packs the
    weights at every start.

    Args:
        folder: of a model of the task translation or text-to-text; with --precision of any task.
        source: sentences to measure on; default: those that its training validated on.
        reference: what they should become, line by line.
        precision: write packed weights of this one, and measure nothing.
        json: print one JSON object.
    """
    if precision:
        if source or reference:
            raise UsageError("nothing is measured with --precision; leave --source and --reference out", "--precision")
        from regard.runs.pack import pack_weights

        packed = pack_weights(folder, precision)
        if json:
            result_json({"packed": str(packed), "precision": precision})
        else:
            say(f"wrote {packed} ({packed.stat().st_size / 1e6:,.1f} MB)")
        return
    for path in filter(None, (source, reference)):
        refuse_no_file(path)
    from regard.runs.pack import pack as measure

    found, path = measure(folder, source, reference, say)
    if json:
        result_json({**found.model_dump(), "kept": found.kept, "file": str(path)})
    else:
        result("\n".join(found.lines()))
        say(f"wrote {path}")


def tune(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    source: Path | None = None,
    reference: Path | None = None,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Choose beam, length and coverage penalty on validation data, and write them to the recipe of a model.

    Length penalties from 0 to 1.6 are tried with the beam of the recipe, or with 4 where that is 1; then beams from 1
    to 8 with the best of them, then small coverage penalties. The narrowest beam and the smallest coverage penalty are
    taken that nothing dearer beats by 0.1 BLEU. The card keeps the table. Of a translator, with 100 sentences or more,
    it is also fitted what it doubts, what --guard warns of, and what confidences of words mean. Choose on validation
    data, never on a test set.

    Args:
        folder: of a model of the task translation or text-to-text.
        source: sentences to measure on; default: those that its training validated on.
        reference: what they should become, line by line.
        dry_run: show the table, and leave the recipe as it is.
        json: print one JSON object with every setting and the chosen one.
    """
    for path in filter(None, (source, reference)):
        refuse_no_file(path)
    from regard.runs.tune import tune as choose

    tried, chosen = choose(folder, source, reference, dry_run, say)
    if json:
        result_json({"settings": list(map(asdict, tried)), "chosen": asdict(chosen)})
    else:
        own = f"decoding.beam = {chosen.beam}, decoding.length_penalty = {chosen.length_penalty:g}"
        own += f", decoding.coverage_penalty = {chosen.coverage_penalty:g}" if chosen.coverage_penalty else ""
        result(f"{own}: BLEU {chosen.bleu:.2f}")


def terms(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    add: Path | None = None,
    remove: list[str] | None = None,
    json: bool = False,
) -> None:
    """Show the terms that a translator's outputs contain, or change them; they are in terms.tsv of its folder.

    A term is a line with source, tab and target, other forms behind |, or = for what is kept as it is. Lines that
    begin with # say nothing.

    Args:
        folder: of a model of the task translation.
        add: a file of terms, which are added; they take the place of those with the same source.
        remove: the source of a term, as written; may be given several times.
        json: print one JSON object.
    """
    if add is not None:
        refuse_no_file(add)
    from regard.tasks.model_folder import edit_terms

    found = edit_terms(folder, add, remove or ())
    if json:
        result_json({"terms": list(map(asdict, found.entries))})
    elif found.lines:
        result("\n".join(found.lines))
    else:
        say("there are no terms; add some by --add FILE")
