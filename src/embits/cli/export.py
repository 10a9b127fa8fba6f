"""`embits export`, `decode`, `slim` and `page`: write the codes of a file in another form.

`embits completion` writes a form of the command line itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from embits import integrations
from embits.cli import options
from embits.cli.output import counted, megabytes, progress_bar, show, size_on_disk, table
from embits.collection import load
from embits.errors import InputError
from embits.file.overwrite import check_target, is_same_file
from embits.remote import is_address, shown
from embits.segment import PARTS
from embits.vectors import WordVectors
from embits.writers import files_of, write_vectors

SHELLS = ("bash", "zsh", "fish")


@click.command()
@options.file_argument
@click.option("--to", type=click.Choice([*integrations.EXPORTERS]), required=True, help="Format.")
@options.output_option(click.STRING, metavar="TARGET", help="A file, folder or database address.")
@options.force_option()
@options.params_option("Parameter of the export.")
@options.json_option
def export(
    file: Path, to: str, output: str, force: bool, params: dict[str, object], as_json: bool
) -> None:
    """Write the codes of FILE in the format of another tool.

    \b
    embits export glove.safetensors --to npy -o codes.npy
    embits export glove.safetensors --to faiss -o codes.faiss --param kind=hnsw
    embits export glove.safetensors --to word2vec -o floats.bin
    embits export glove.safetensors --to sqlite -o glove.db
    embits export glove.safetensors --to duckdb -o glove.duckdb
    embits export glove.safetensors --to elasticsearch -o glove.jsonl
    embits export glove.safetensors --to pgvector -o postgresql:///db --param table=words
    """
    if is_same_file(output, file):
        raise InputError(f"{output} is an input of this job: choose another output")
    bits = load(file)
    with progress_bar("exporting", quiet=as_json) as progress:
        made = integrations.export(bits, to, output, progress=progress, overwrite=force, **params)
    facts = {"to": to, "target": output, "rows": len(bits), "bits": bits.n_bits} | made
    rest = [
        megabytes(made[name]) if name == "bytes" else f"{name.replace('_', ' ')} {value}"
        for name, value in list(facts.items())[4:]
        if name != "mapping"
    ]
    line = f"{counted(len(bits))} × {bits.n_bits} bits in {facts['target']}"
    show(facts, line + (f" ({', '.join(rest)})" if rest else ""), as_json)
    if (mapping := made.get("mapping")) and not as_json:  # of an engine that is fed the file
        click.echo(mapping if isinstance(mapping, str) else json.dumps(mapping, indent=2))


@click.command()
@options.file_argument
@options.output_option()
@options.force_option()
@click.option(
    "--word",
    "--words",
    "words",
    multiple=True,
    metavar="WORD",
    help="Only this id. May be repeated.",
)
@options.json_option
def decode(file: Path, output: Path, force: bool, words: tuple[str, ...], as_json: bool) -> None:
    """Rebuild float vectors from the bits of FILE.

    The suffix of the output sets the format: .txt or .vec for word2vec text (add .gz to compress),
    .bin for word2vec binary, .npz or .parquet for words and matrix. With .npy or .safetensors, the
    words go into a .words file with the same name.

    \b
    embits decode glove.safetensors -o glove.vec
    embits decode glove.safetensors -o few.txt --word queen --word king
    """
    for target in files_of(output):
        check_target(target, [file], force)
    bits = load(file)
    vectors = WordVectors(words or bits.words, bits.decode(words or None))
    write_vectors(output, vectors, overwrite=force)
    n, dims, size = len(vectors), vectors.dims, output.stat().st_size
    facts = {"file": str(output), "words": n, "dims": dims, "bytes": size}
    show(facts, f"{n:,} × {dims} floats in {output}: {megabytes(size)}", as_json)


@click.command()
@options.file_argument
@options.output_option()
@click.option(
    "--without", "parts", multiple=True, type=click.Choice(list(PARTS)), help="Part to leave out."
)
@click.option("--half-decoder", is_flag=True, help="Store the decoder as 16-bit floats.")
@options.force_option(help="Replace an existing file that does not hold codes.")
@options.json_option
def slim(
    file: Path, output: Path, parts: Sequence[str], half_decoder: bool, force: bool, as_json: bool
) -> None:
    """Write a smaller copy of FILE, without parts that you do not need.

    --without may be repeated. If it is not given, the subwords are left out, and the coder too
    unless --half-decoder is given.

    Without its coder, a file cannot encode or decode vectors. Without subwords, unknown words have
    no codes. Without the order, rows are sorted by id, and their numbers change.

    \b
    embits slim glove.safetensors -o small.safetensors
    embits slim glove.safetensors -o small.safetensors --without coder --without order
    embits slim glove.safetensors -o small.safetensors --half-decoder
    """
    parts = parts or (["subwords"] if half_decoder else ["coder", "subwords"])
    if half_decoder and "coder" in parts:
        raise click.UsageError("--half-decoder keeps the coder, which --without coder leaves out")
    check_target(output, [file], force, codes=True)
    bits = load(file)
    small = bits.slim(parts, half_decoder=half_decoder)
    small.save(output, overwrite=force)
    before, after = bits.byte_counts()._asdict(), small.byte_counts()._asdict()
    saved = {name: before[name] - after[name] for name in before if before[name] > after[name]}
    lost = {name: PARTS[name] for name in PARTS if name in parts and name in saved}
    old, new = size_on_disk(file), size_on_disk(output)
    facts = {"file": str(file), "output": str(output), "bytes_before": old, "bytes": new}
    facts |= {"saved": saved, "no_longer": lost}
    show(facts, f"{output}: {megabytes(new)}, from {megabytes(old)}", as_json)
    if not as_json:
        table([(name, f"{size:,} bytes saved") for name, size in saved.items()])
        for name, why in lost.items():
            click.echo(f"without {name}, this no longer works: {why}")


@click.command()
@options.file_argument
@options.output_option(options.FOLDER, metavar="DIR", required=False, help="Folder to write.")
@click.option("--title", default="embits", help="Title of the page.")
@options.force_option(help="Replace a page in the folder; other files stay.")
@click.option("--open", "is_opened", is_flag=True, help="Serve the page here and open a browser.")
@options.count("--port", least=0, most=65535, default=0, help="For --open; 0: any.")
@options.json_option
def page(
    file: Path,
    output: Path | None,
    is_opened: bool,
    port: int,
    force: bool,
    as_json: bool,
    title: str,
) -> None:
    """Write a static web page that searches FILE in the browser.

    The page runs on the visitor's device, also offline. Any static web server can serve the
    folder. With --open but without -o, the page is deleted when the command ends.

    \b
    embits page glove.safetensors -o site --title "Words of GloVe"
    embits page glove.safetensors --open
    """
    if output is None and not is_opened:
        raise click.UsageError("give a folder with -o DIR, or open the page with --open")
    if is_address(file):
        raise InputError(f"{shown(file)} is an address: a page is made of a local file")
    from embits.page import serve, write_page

    with tempfile.TemporaryDirectory(prefix="embits-page-") as temporary:
        folder = output or Path(temporary)
        written = write_page(file, folder, title=title, overwrite=force)
        size = sum(path.stat().st_size for path in written)
        facts = {"folder": str(folder), "files": len(written), "bytes": size}
        if as_json or output:
            show(facts, f"{folder}: {len(written)} files, {megabytes(size)}", as_json)
        if not is_opened:
            return
        with serve(folder, port) as server, contextlib.suppress(KeyboardInterrupt):
            address = f"http://127.0.0.1:{server.server_port}/"
            click.echo(f"{address}  (press Ctrl-C to stop)", err=True)
            webbrowser.open(address)
            server.serve_forever()


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the script that enables completion of `embits` in SHELL: bash, zsh or fish.

    SHELL defaults to the shell named by $SHELL. The script is click's own. It completes commands,
    options, methods and file names.

    \b
    embits completion bash > ~/.local/share/bash-completion/completions/embits
    embits completion zsh > ~/.zfunc/_embits    # a folder of $fpath, set before compinit
    embits completion fish > ~/.config/fish/completions/embits.fish
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    script = get_completion_class(shell) if shell in SHELLS else None
    if script is None:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    click.echo(script(ctx.find_root().command, {}, "embits", "_EMBITS_COMPLETE").source())
