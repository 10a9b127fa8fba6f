"""`embits slim`: write a smaller file without parts that are not needed."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli.options import file_argument, force_option, json_option, output_option
from embits.cli.output import megabytes, print_json, size_on_disk, table
from embits.collection import load
from embits.file.overwrite import check_target
from embits.slimming import PARTS

_DEFAULT = ("coder", "subwords")


@click.command()
@file_argument
@output_option()
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(list(PARTS)),
    help="Part to leave out; may be repeated. The default is coder and subwords, or subwords alone "
    "with --half-decoder.",
)
@click.option("--half-decoder", is_flag=True, help="Keep the decoder in 16 bits.")
@force_option(help="Replace an existing file that does not hold codes.")
@json_option
def command(
    file: Path,
    output: Path,
    without: tuple[str, ...],
    half_decoder: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a smaller copy of FILE without parts that are not needed.

    Without its coder, a file cannot encode or decode vectors. Without subwords, unknown words have
    no codes. Without the order, rows are sorted by their ids, and row numbers change.

    \b
    embits slim glove.safetensors -o small.safetensors
    embits slim glove.safetensors -o small.safetensors --without coder --without order
    embits slim glove.safetensors -o small.safetensors --half-decoder
    """
    parts = without or (_DEFAULT[1:] if half_decoder else _DEFAULT)
    if half_decoder and "coder" in parts:
        raise click.UsageError("--half-decoder keeps the coder, which --without coder leaves out")
    check_target(output, [file], force, codes=True)
    bits = load(file)
    slim = bits.slim(parts, half_decoder=half_decoder)
    slim.save(output, overwrite=force)
    before, after = bits.byte_counts()._asdict(), slim.byte_counts()._asdict()
    saved = {name: before[name] - after[name] for name in before if before[name] > after[name]}
    sizes = size_on_disk(file), size_on_disk(output)
    lost = {name: PARTS[name] for name in PARTS if name in parts and name in saved}
    facts = {
        "file": str(file),
        "output": str(output),
        "bytes_before": sizes[0],
        "bytes": sizes[1],
        "saved": saved,
        "no_longer": lost,
    }
    if as_json:
        print_json(facts)
        return
    click.echo(f"{output}: {megabytes(sizes[1])}, from {megabytes(sizes[0])}")
    table([(name, f"{size:,} bytes saved") for name, size in saved.items()])
    for name, why in lost.items():
        click.echo(f"without {name}, this no longer works: {why}")
