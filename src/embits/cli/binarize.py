"""`embits binarize`: the main job."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from embits.cli.common import (
    FILE,
    json_option,
    megabytes,
    named_values,
    output_option,
    print_json,
    progress_bar,
    read,
    reading_options,
)
from embits.cli.info import describe
from embits.coders import DEFAULT_METHOD, METHODS, coder_class
from embits.fitting import binarize


@click.command()
@click.argument("vectors", type=FILE)
@output_option
@click.option("--bits", type=click.IntRange(min=1), help="Bits of a code [default: 256].")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default=DEFAULT_METHOD, show_default=True
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the training.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=named_values,
    help="A parameter of the method; may be repeated.",
)
@reading_options
@click.option("--subwords/--no-subwords", default=True, help="Keep fastText subwords, if any.")
@json_option
def command(
    vectors: Path,
    output: Path,
    bits: int | None,
    method: str,
    seed: int,
    params: dict[str, Any],
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    subwords: bool,
    as_json: bool,
) -> None:
    """Turn the float VECTORS of a file into a file of bits.

    VECTORS is word2vec, GloVe or fastText text (also .gz, .zip, .xz), word2vec or fastText
    .bin, .npy with its words beside it, .npz, safetensors, Parquet or JSON; gensim:NAME is a
    model of gensim's downloader.

    \b
    embits binarize glove.6B.300d.txt -o glove.safetensors --bits 256
    embits binarize cc.en.300.vec.gz -o en.safetensors --bits 512 --limit 500000
    embits binarize glove.txt -o glove.safetensors --method paper --param lambda_reg=4
    """
    settings = dict(params)
    if "random_state" in coder_class(method).param_names():
        settings.setdefault("random_state", seed)
    start = time.perf_counter()
    floats = read(vectors, limit, words_file, skip_bad, quiet=as_json)
    with progress_bar("fitting", quiet=as_json) as progress:
        binary = binarize(floats, bits, method, progress=progress, **settings)
    if not subwords:
        binary.subwords = None
    binary.save(output)
    facts = describe(output, binary)
    if as_json:
        print_json(facts)
        return
    click.echo(
        f"{facts['words']:,} words × {facts['bits']} bits in {output}: "
        f"{megabytes(facts['bytes'])} instead of {megabytes(facts['float_bytes'])}, "
        f"{_change(facts['ratio'])} ({time.perf_counter() - start:.1f} s)"
    )
    if binary.subwords is not None:
        size = megabytes(binary.subwords.nbytes)
        click.echo(f"{size} of it answer for unknown words; --no-subwords leaves them out")


def _change(ratio: float) -> str:
    if ratio >= 1:
        return f"{ratio:.1f} times smaller"
    return f"{1 / ratio:.1f} times larger: words and coder weigh more than so few floats"
