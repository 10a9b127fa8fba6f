"""Turn float vectors into binary codes, in a file or a collection.

`embits binarize`, `encode`, `cells`, `add`, `remove` and `compact`.
"""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from embits.checks import MAX_BITS
from embits.cli import options
from embits.cli.output import counted, describe, megabytes, show, size_on_disk, steps_progress
from embits.coders import coder_class, new_coder
from embits.collection import Collection, load, load_coder
from embits.collection.opening import opened_or_undone
from embits.file.overwrite import check_target
from embits.jobs import binarize_to_file, encode_to_collection, encode_to_file
from embits.jobs.texts import add_texts
from embits.text.answers import holds_encoder

ABOUT_TARGETS = {  # of the codes of words
    "neighbors": "target neighbors: nearest by cosine; as people judge: --param target=similarity",
    "similarity": "target similarity: as people judge; nearest by cosine: --param target=neighbors",
}


@click.command()
@options.vectors_argument
@options.output_option(options.OUTPUT_ADDRESS, help=options.OUTPUT_HELP)
@options.count("--bits", most=MAX_BITS, help="Bits per code [default: 256].")
@options.method_option
@options.count("--seed", least=0, default=0, help="Random seed of the training.")
@options.params_option("Parameter of the method.")
@options.reading_options
@options.count("--sample", help="Train on N random rows [default: all; 100,000 with --ray].")
@click.option(
    "--subwords/--no-subwords", default=True, help="Keep fastText subwords, if there are any."
)
@options.lengths_option
@options.cells_option
@options.ray_options
@options.json_option
def binarize(
    vectors: Any,
    output: Path,
    force: bool,
    bits: int | None,
    method: str,
    seed: int,
    params: dict[str, Any],
    sample: int | None,
    subwords: bool,
    as_json: bool,
    cluster: options.Cluster | None,
    **reading: Any,
) -> None:
    """Turn the float VECTORS of a file into a file of binary codes.

    VECTORS is word2vec, GloVe or fastText text (also .gz, .zip, .xz), word2vec or fastText
    .bin, .npy, .npz, safetensors, Parquet or JSON; several files of .npy or Parquet, or a folder
    of them; the address of one (https://, s3://, gs://, hf://); or gensim:NAME, a model that
    gensim downloads. It may be larger than memory. If a job on more than 64 MB is stopped, run the
    same command again to resume it.

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
    if "n_bits" in params:
        raise click.UsageError("--param n_bits: give --bits instead")
    coder = new_coder(method, bits, params)  # refuses what is no parameter of the method
    if cluster is not None:

        def job(ray: Any, **on: Any) -> Any:
            fit = {"sample": sample or 100_000, "seed": seed}
            fitted = ray.fit(vectors, coder, column=on["column"], on_bad=on["on_bad"], **fit)
            return ray.encode(vectors, fitted, output, **on)

        cluster(job, options.ENCODED, as_json)
        return
    start = time.perf_counter()
    title = f"binarize {_named(vectors)} to {output}: {method}" + (f", {bits} bits" if bits else "")
    how = {"sample": sample, "subwords": subwords, "overwrite": force, **reading, **params}
    with steps_progress(title, quiet=as_json) as progress:
        binary = binarize_to_file(vectors, output, bits, method, progress=progress, **how)
    facts = describe(output, binary)
    size, floats = facts["bytes"], facts["float_bytes"]
    line = f"{counted(len(binary))} × {facts['bits']} bits in {output}: {megabytes(size)} "
    line += f"instead of {megabytes(floats)} as float32, "
    larger = f"{size / max(1, floats):.1f} times larger: `embits info` shows the parts"
    line += larger if size > floats else f"{floats / size:.1f} times smaller"
    if sample is not None:
        facts["fitted_on"] = min(sample, len(binary))
        line += f", trained on {counted(facts['fitted_on'])}"
    show(facts, f"{line} ({time.perf_counter() - start:.1f} s)", as_json)
    about = ABOUT_TARGETS.get(facts["params"].get("target"))
    if about and not as_json and any(word.isalpha() for word in islice(binary.words, 20)):
        click.echo(about)


@click.command()
@options.file_argument
@options.vectors_argument
@options.output_option(options.OUTPUT_ADDRESS, help=options.OUTPUT_HELP)
@options.reading_options
@options.lengths_option
@options.cells_option
@options.ray_options
@options.json_option
def encode(
    file: Path,
    vectors: Any,
    output: Path,
    force: bool,
    as_json: bool,
    cluster: options.Cluster | None,
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
        cluster(
            lambda ray, **on: ray.encode(vectors, coder, output, **on), options.ENCODED, as_json
        )
        return
    title = f"encode {_named(vectors)} to {output} with the coder of {file}"
    reading["overwrite"] = force
    with steps_progress(title, quiet=as_json) as progress:
        binary = encode_to_file(file, vectors, output, progress=progress, **reading)
    facts = describe(output, binary)
    rows = f"{counted(len(binary))} × {facts['bits']} bits"
    show(facts, f"{rows} in {output}: {megabytes(facts['bytes'])}", as_json)


@click.command()
@options.file_argument
@options.output_option()
@click.option(
    "--cells", type=options.CountOr("auto"), default="auto", help="How many; auto: 4 √rows or less."
)
@options.force_option(help="Replace an existing file that does not hold codes.")
@options.json_option
def cells(file: Path, output: Path, force: bool, cells: int | str, as_json: bool) -> None:
    """Store the codes of FILE in cells, so that `embits search --recall` reads few of them.

    Row numbers and ids stay. FILE may be a collection; -o is one file. `embits compact --cells`
    makes the cells of a collection in its place.

    \b
    embits cells docs.safetensors -o docs-cells.safetensors
    embits search docs-cells.safetensors questions.npy --recall 0.95
    """
    check_target(output, [file], force, codes=True)
    start, bits = time.perf_counter(), load(file).with_cells(cells)
    bits.save(output, overwrite=force)
    facts = describe(output, bits)
    line = f"{counted(len(bits))} in {counted(facts['cells'], 'cell')}, {output}: "
    seconds = time.perf_counter() - start
    show(facts, f"{line}{megabytes(facts['bytes'])} ({seconds:.1f} s)", as_json)


collection_argument = click.argument("collection", type=options.FILE)
wait = "Wait so long for another process that writes to the collection."
seconds = options.DecimalNumber(min=0)
timeout_option = click.option("--timeout", type=seconds, default=0, metavar="SECONDS", help=wait)


@click.command()
@collection_argument
@options.vectors_argument
@options.file_option("--coder", help="Make a new collection with the coder of this file.")
@options.count("--bits", most=MAX_BITS, help="Fit a coder of so many bits on a new collection.")
@click.option(
    "--keep", type=click.Choice(["float16", "int8"]), help="Keep vectors in a new collection."
)
@options.names_option("--columns", help="Columns of a Parquet file to store beside the codes.")
@click.option("--update", is_flag=True, help="Replace rows whose ids exist, and add the others.")
@options.reading_options
@options.lengths_option
@timeout_option
@options.json_option
def add(
    collection: Path,
    vectors: Any,
    coder: Path | None,
    bits: int | None,
    keep: Literal["float16", "int8"] | None,
    columns: list[str] | None,
    update: bool,
    timeout: float,
    as_json: bool,
    **reading: Any,
) -> None:
    """Add VECTORS to COLLECTION, a folder that embits manages.

    Words become ids; vectors without words are numbered. VECTORS may be larger than memory, and may
    also be a file of codes made with the same coder; or texts, for a collection that `embits index`
    made. If a row cannot be added, none is.

    \b
    embits add news monday.parquet --coder coder.safetensors
    embits add news tuesday.parquet --columns title,year
    """
    if holds_encoder(collection) and coder is None:
        context, apply = click.get_current_context(), "collection vectors update timeout as_json"
        for each in context.command.params:
            source = context.get_parameter_source(each.name or "")
            if source is ParameterSource.COMMANDLINE and each.name not in apply.split():
                raise click.UsageError(f"{each.opts[0]} does not apply to texts")
        opened = _existing(collection, timeout)
        texts = vectors if isinstance(vectors, tuple) else [vectors]
        done = add_texts(opened, texts, update=update)
        _show_change(collection, opened, done, as_json)
        if done["skipped"] and done.get("removed") and not as_json:
            left_out = f"{counted(done['skipped'], 'passage')} without a known word"
            click.echo(f"{left_out}: the old passages of their texts were removed")
        return
    title = f"add {_named(vectors)} to {collection}"
    reading |= {"update": update, "columns": columns}
    with (
        opened_or_undone(collection, coder, n_bits=bits, keep=keep, timeout=timeout) as opened,
        steps_progress(title, quiet=as_json) as progress,
    ):
        before, emptied = len(opened), sorted({*opened.manifest.columns} - {*(columns or ())})
        if update and columns and emptied:
            names = ", ".join(emptied)
            raise click.UsageError(f"--columns would empty {names} of updated rows: name all")
        n = encode_to_collection(opened, vectors, progress=progress, **reading)
    added = len(opened) - before if update else n
    done = {"updated": n - added, "added": added} if update else {"added": n}
    _show_change(collection, opened, done, as_json)


@click.command()
@collection_argument
@click.argument("ids", nargs=-1, metavar="ID...")
@options.file_option("--ids", "ids_file", help="File with the ids, one per line.")
@options.conditions_option("Remove the rows that fulfil a condition on a column")
@timeout_option
@options.json_option
def remove(
    collection: Path,
    ids: tuple[str, ...],
    ids_file: Path | None,
    where: tuple[str, ...],
    timeout: float,
    as_json: bool,
) -> None:
    """Remove the rows with these IDs from COLLECTION.

    If an id is unknown, no row is removed. The codes stay on disk until `embits compact`.

    \b
    embits remove news doc-17 doc-18
    embits remove news --ids expired.txt
    embits remove news --where 'label = spam' --where 'year < 2020'
    """
    if bool(ids or ids_file is not None) == bool(where):
        raise click.UsageError("give one of them: IDs, --ids FILE or --where")
    opened = _existing(collection, timeout)
    if where:
        n = opened.remove(where=options.parse_conditions(where, opened.manifest.columns))
    else:
        listed = options.read_ids(ids_file, len(opened)) if ids_file else ()  # a file may be empty
        n = opened.remove([*ids, *listed])
    _show_change(collection, opened, {"removed": n}, as_json)


@click.command()
@collection_argument
@options.cells_option
@timeout_option
@options.json_option
def compact(collection: Path, cells: int | str | None, timeout: float, as_json: bool) -> None:
    """Merge the pieces of COLLECTION into one file, without removed rows.

    Rows keep their order, and searches their results. Programs that have the collection open are
    not affected. If there are cells, they are rebuilt.

    \b
    embits compact news
    embits compact news --cells auto
    """
    opened = _existing(collection, timeout)
    opened.compact(cells=cells)
    _show_change(collection, opened, {}, as_json)


def _named(vectors: Any) -> str:
    several = isinstance(vectors, tuple)
    return f"{vectors[0]} and {len(vectors) - 1} more" if several else str(vectors)


def _existing(path: Path, timeout: float) -> Collection:
    hint = ", and only collections can be changed: `embits add` makes one from a file"
    return options.collection_at(path, hint, timeout)


def _show_change(path: Path, collection: Collection, done: dict[str, int], as_json: bool) -> None:
    """Print what was done, and what the collection has now."""
    rows, pieces, size = len(collection), len(collection.manifest.pieces), size_on_disk(path)
    facts = {"collection": str(path), **done, "rows": rows, "pieces": pieces, "bytes": size}
    counts = {name: count for name, count in done.items() if count} or dict([*done.items()][:1])
    change = ", ".join(f"{counted(count)} {name}" for name, count in counts.items())
    holds = f"{counted(rows)} in {counted(pieces, 'piece')}, {megabytes(size)}"
    show(facts, f"{path}: {'; '.join(filter(None, [change, holds]))}", as_json)
