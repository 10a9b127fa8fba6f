"""`embits binarize` and `encode`: turn float vectors into binary codes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from embits.checks import MAX_BITS
from embits.cli import options
from embits.cli.output import counted, describe, megabytes, show
from embits.cli.progress import steps_progress
from embits.cli.ray_options import ADDRESS, OUTPUT_HELP, Cluster, ray_options
from embits.coders import DEFAULT_METHOD, METHODS, coder_class, new_coder
from embits.collection import load_coder
from embits.jobs import binarize_to_file, encode_to_file


@click.command()
@click.argument("vectors", type=ADDRESS)
@options.output_option(ADDRESS, help=OUTPUT_HELP)
@click.option("--bits", type=options.WholeNumber(1, MAX_BITS), help="Bits per code [default: 256].")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default=DEFAULT_METHOD, help="The coder."
)
@click.option("--seed", type=options.WholeNumber(), default=0, help="Random seed of the training.")
@options.params_option("Parameter of the method.", shell_complete=options.params_of_method)
@options.reading_options
@click.option(
    "--sample",
    type=options.WholeNumber(min=1),
    metavar="N",
    help="Train on N random rows [default: all, with --ray 100,000]; near-lossless learns from at "
    "most 50,000 of them.",
)
@click.option(
    "--subwords/--no-subwords", default=True, help="Keep fastText subwords, if there are any."
)
@options.lengths_option
@ray_options
@options.json_option
def binarize(
    vectors: Path,
    output: Path,
    force: bool,
    bits: int | None,
    method: str,
    seed: int,
    params: dict[str, Any],
    sample: int | None,
    subwords: bool,
    lengths: bool,
    as_json: bool,
    cluster: Cluster | None,
    **reading: Any,
) -> None:
    """Turn the float VECTORS of a file into a file of binary codes.

    VECTORS is word2vec, GloVe or fastText text (also .gz, .zip, .xz), word2vec or fastText
    .bin, .npy, .npz, safetensors, Parquet or JSON. gensim:NAME is a model of gensim's downloader.
    VECTORS may be larger than memory. A job on a file over 64 MB can be resumed: run the same
    command again after it was stopped.

    The ids of a matrix are read from --words FILE; else from a file of the same name that ends in
    .words, .txt, .vocab, .tsv, .json or .parquet; else from words.*, vocab.*, vocabulary.*,
    tokenizer.* or the only .parquet file in its folder, if it has one id for each row.

    \b
    embits binarize glove.6B.300d.txt -o glove.safetensors --bits 256
    embits binarize cc.en.300.vec.gz -o en.safetensors --bits 512 --limit 500000
    embits binarize glove.txt -o glove.safetensors --method paper --param lambda_reg=4
    embits binarize s3://bucket/vectors -o s3://bucket/codes --bits 256 --ray
    """
    settings = dict(params)
    if "random_state" in coder_class(method).param_names():
        settings.setdefault("random_state", seed)
    if cluster is not None:
        coder, on_bad = new_coder(method, bits, settings), reading["on_bad"]
        options = {"column": cluster.options["column"], "sample": sample or 100_000, "seed": seed}
        cluster.encode(
            vectors,
            lambda ray: ray.fit(vectors, coder, on_bad=on_bad, **options),
            output,
            as_json,
            on_bad=on_bad,
            lengths=lengths,
        )
        return
    start = time.perf_counter()
    title = f"binarize {vectors} to {output}: {method}" + (f", {bits} bits" if bits else "")
    with steps_progress(title, quiet=as_json) as progress:
        binary = binarize_to_file(
            vectors,
            output,
            bits,
            method,
            sample=sample,
            subwords=subwords,
            lengths=lengths,
            overwrite=force,
            progress=progress,
            **reading,
            **settings,
        )
    facts = describe(output, binary)
    if sample is not None:
        facts["fitted_on"] = min(sample, len(binary))
    line = f"{counted(len(binary))} × {facts['bits']} bits in {output}: {_sizes(facts)}"
    line += f" ({time.perf_counter() - start:.1f} s)"
    if sample is not None and sample < len(binary):
        line += f"\ntrained on {sample:,} random rows"
    show(facts, line, as_json)


@click.command()
@options.file_argument
@click.argument("vectors", type=ADDRESS)
@options.output_option(ADDRESS, help=OUTPUT_HELP)
@options.reading_options
@options.lengths_option
@ray_options
@options.json_option
def encode(
    file: Path,
    vectors: Path,
    output: Path,
    force: bool,
    lengths: bool,
    as_json: bool,
    cluster: Cluster | None,
    **reading: Any,
) -> None:
    """Encode the VECTORS of another file with the coder of FILE.

    VECTORS may be larger than memory. A job on a file over 64 MB can be resumed: run the same
    command again after it was stopped.

    \b
    embits encode glove.safetensors new-words.txt -o new-words.safetensors
    embits encode coder.safetensors s3://bucket/vectors -o s3://bucket/codes --ray
    """
    if cluster is not None:
        coder, on_bad = load_coder(file), reading["on_bad"]
        cluster.encode(vectors, lambda _: coder, output, as_json, on_bad=on_bad, lengths=lengths)
        return
    title = f"encode {vectors} to {output} with the coder of {file}"
    with steps_progress(title, quiet=as_json) as progress:
        binary = encode_to_file(
            file, vectors, output, lengths=lengths, overwrite=force, progress=progress, **reading
        )
    facts = describe(output, binary)
    rows = f"{counted(len(binary))} × {facts['bits']} bits"
    show(facts, f"{rows} in {output}: {megabytes(facts['bytes'])}", as_json)


def _sizes(facts: dict[str, Any]) -> str:
    size, floats = facts["bytes"], facts["float_bytes"]
    if size <= floats:
        change = f"{floats / size:.1f} times smaller"
    elif not floats:
        change = "without rows"
    else:
        change = (
            f"{size / floats:.1f} times larger: the ids and the coder need more than the floats"
        )
    return f"{megabytes(size)} instead of {megabytes(floats)} as float32, {change}"
