"""`embits binarize` and `encode`: turn float vectors into binary codes."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import click

from embits.checks import MAX_BITS
from embits.cli import options
from embits.cli.output import counted, describe, megabytes, show
from embits.cli.progress import steps_progress
from embits.cli.ray_options import ADDRESS, ENCODED, OUTPUT_HELP, Cluster, ray_options
from embits.coders import coder_class, new_coder
from embits.collection import load_coder
from embits.jobs import binarize_to_file, encode_to_file

ABOUT_TARGETS = {  # of the codes of words
    "neighbors": "target neighbors: nearest by cosine; as people judge: --param target=similarity",
    "similarity": "target similarity: as people judge; nearest by cosine: --param target=neighbors",
}


@click.command()
@click.argument("vectors", type=ADDRESS)
@options.output_option(ADDRESS, help=OUTPUT_HELP)
@click.option("--bits", type=options.WholeNumber(1, MAX_BITS), help="Bits per code [default: 256].")
@options.method_option
@click.option("--seed", type=options.WholeNumber(), default=0, help="Random seed of the training.")
@options.params_option("Parameter of the method.", shell_complete=options.params_of_method)
@options.reading_options
@click.option(
    "--sample", type=options.WholeNumber(min=1),
    help="Train on N random rows [default: all; 100,000 with --ray]. near-lossless uses at most "
    "50,000 of them.",
)  # fmt: skip
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
    as_json: bool,
    cluster: Cluster | None,
    **reading: Any,
) -> None:
    """Turn the float VECTORS of a file into a file of binary codes.

    VECTORS is word2vec, GloVe or fastText text (also .gz, .zip, .xz), word2vec or fastText
    .bin, .npy, .npz, safetensors, Parquet or JSON; or gensim:NAME, a model that gensim downloads.
    It may be larger than memory. If a job on more than 64 MB is stopped, run the same command
    again to resume it.

    The ids of a matrix come from --words FILE, or else from a file beside it with the same name
    and the suffix .words, .txt, .vocab, .tsv, .json or .parquet; or else from words.*, vocab.*,
    vocabulary.*, tokenizer.* or the only .parquet file in the folder, if it has one id per row.

    \b
    embits binarize glove.6B.300d.txt -o glove.safetensors --bits 256
    embits binarize cc.en.300.vec.gz -o en.safetensors --bits 512 --limit 500000
    embits binarize glove.txt -o glove.safetensors --method paper --param lambda_reg=4
    embits binarize s3://bucket/vectors -o s3://bucket/codes --bits 256 --ray
    """
    if "random_state" in coder_class(method).param_names():
        params.setdefault("random_state", seed)
    if cluster is not None:
        coder = new_coder(method, bits, params)

        def job(ray: Any, **on: Any) -> Any:
            fit = {"sample": sample or 100_000, "seed": seed}
            fitted = ray.fit(vectors, coder, column=on["column"], on_bad=on["on_bad"], **fit)
            return ray.encode(vectors, fitted, output, **on)

        cluster(job, ENCODED, as_json)
        return
    start = time.perf_counter()
    title = f"binarize {vectors} to {output}: {method}" + (f", {bits} bits" if bits else "")
    reading |= {"sample": sample, "subwords": subwords, "overwrite": force}
    with steps_progress(title, quiet=as_json) as progress:
        binary = binarize_to_file(
            vectors, output, bits, method, progress=progress, **reading, **params
        )
    facts = describe(output, binary)
    size, floats = facts["bytes"], facts["float_bytes"]
    change = f"{floats / size:.1f} times smaller"
    if size > floats:
        change = f"{size / max(1, floats):.1f} times larger: `embits info` shows the parts"
    line = f"{counted(len(binary))} × {facts['bits']} bits in {output}: {megabytes(size)} "
    line += f"instead of {megabytes(floats)} as float32, {change}"
    if sample is not None:
        facts["fitted_on"] = min(sample, len(binary))
        line += f", trained on {counted(facts['fitted_on'])}"
    show(facts, f"{line} ({time.perf_counter() - start:.1f} s)", as_json)
    about = ABOUT_TARGETS.get(facts["params"].get("target"))
    if about and not as_json and any(word.isalpha() for word in islice(binary.words, 20)):
        click.echo(about)


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
    as_json: bool,
    cluster: Cluster | None,
    **reading: Any,
) -> None:
    """Encode the VECTORS of another file with the coder of FILE.

    VECTORS may be larger than memory. If a job on more than 64 MB is stopped, run the same command
    again to resume it.

    \b
    embits encode glove.safetensors new-words.txt -o new-words.safetensors
    embits encode coder.safetensors s3://bucket/vectors -o s3://bucket/codes --ray
    """
    if cluster is not None:
        coder = load_coder(file)
        cluster(lambda ray, **on: ray.encode(vectors, coder, output, **on), ENCODED, as_json)
        return
    title = f"encode {vectors} to {output} with the coder of {file}"
    with steps_progress(title, quiet=as_json) as progress:
        binary = encode_to_file(
            file, vectors, output, overwrite=force, progress=progress, **reading
        )
    facts = describe(output, binary)
    rows = f"{counted(len(binary))} × {facts['bits']} bits"
    show(facts, f"{rows} in {output}: {megabytes(facts['bytes'])}", as_json)
