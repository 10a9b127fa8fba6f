"""`embits binarize`: turn float vectors into binary codes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from embits.cli.file_facts import counted_rows, describe
from embits.cli.numbers import WholeNumber
from embits.cli.options import (
    check_writable,
    json_option,
    output_option,
    params_option,
    reading_options,
)
from embits.cli.output import megabytes, print_json
from embits.cli.progress import steps_progress
from embits.cli.ray_options import ADDRESS, OUTPUT_HELP, Cluster, ray_options
from embits.cli.suggestions import params_of_method
from embits.coders import DEFAULT_METHOD, METHODS, coder_class, new_coder
from embits.coders.checks import MAX_BITS
from embits.jobs import binarize_to_file

if TYPE_CHECKING:
    from embits.readers.source import Repeats


@click.command()
@click.argument("vectors", type=ADDRESS)
@output_option(ADDRESS, help=OUTPUT_HELP)
@click.option("--bits", type=WholeNumber(1, MAX_BITS), help="Bits per code [default: 256].")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default=DEFAULT_METHOD, help="The coder."
)
@click.option("--seed", type=WholeNumber(), default=0, help="Random seed of the training.")
@params_option("Parameter of the method.", shell_complete=params_of_method)
@reading_options
@click.option(
    "--sample",
    type=WholeNumber(min=1),
    metavar="N",
    help="Train on N random rows [default: all, with --ray 100,000]; near-lossless learns from at "
    "most 50,000 of them.",
)
@click.option(
    "--subwords/--no-subwords", default=True, help="Keep fastText subwords, if there are any."
)
@ray_options
@json_option
def command(
    vectors: Path,
    output: Path,
    force: bool,
    bits: int | None,
    method: str,
    seed: int,
    params: dict[str, Any],
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    repeats: Repeats | None,
    sample: int | None,
    subwords: bool,
    as_json: bool,
    cluster: Cluster | None,
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
        coder = new_coder(method, bits, settings)
        options = {"column": cluster.column, "sample": sample or 100_000, "seed": seed}
        options["on_bad"] = "skip" if skip_bad else "raise"
        cluster.encode(
            vectors,
            lambda ray: ray.fit(vectors, coder, **options),
            output,
            skip_bad=skip_bad,
            as_json=as_json,
        )
        return
    check_writable(output)
    start = time.perf_counter()
    title = f"binarize {vectors} to {output}: {method}" + (f", {bits} bits" if bits else "")
    with steps_progress(title, quiet=as_json) as progress:
        binary = binarize_to_file(
            vectors,
            output,
            bits,
            method,
            limit=limit,
            words=words_file,
            on_bad="skip" if skip_bad else "raise",
            repeats=repeats,
            sample=sample,
            subwords=subwords,
            overwrite=force,
            progress=progress,
            **settings,
        )
    facts = describe(output, binary)
    if sample is not None:
        facts["fitted_on"] = min(sample, len(binary))
    if as_json:
        print_json(facts)
        return
    rows = f"{counted_rows(binary)} × {facts['bits']} bits"
    click.echo(f"{rows} in {output}: {_sizes(facts)} ({time.perf_counter() - start:.1f} s)")
    if sample is not None and sample < len(binary):
        click.echo(f"trained on {sample:,} random rows")


def _sizes(facts: dict[str, Any]) -> str:
    sizes = f"{megabytes(facts['bytes'])} instead of {megabytes(facts['float_bytes'])} as float32"
    return f"{sizes}, {_change(facts['bytes'], facts['float_bytes'])}"


def _change(size: int, float_size: int) -> str:
    if size <= float_size:
        return f"{float_size / size:.1f} times smaller"
    if not float_size:
        return "without rows"
    return f"{size / float_size:.1f} times larger: the ids and the coder need more than the floats"
