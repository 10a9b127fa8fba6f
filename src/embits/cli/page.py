"""`embits page`: a static web page that searches a file in the browser."""

from __future__ import annotations

import contextlib
import tempfile
import webbrowser
from pathlib import Path

import click

from embits.cli import options
from embits.cli.output import megabytes, print_json
from embits.page import serve, write_page


@click.command()
@options.file_argument
@options.output_option(options.FOLDER, metavar="DIR", required=False, help="Folder to write.")
@click.option("--title", default="embits", help="Title of the page.")
@options.force_option(help="Replace a page in the folder; other files stay.")
@click.option("--open", "show", is_flag=True, help="Serve the page here and open a browser.")
@click.option("--port", type=options.WholeNumber(0, 65535), default=0, help="For --open; 0: any.")
@options.json_option
def command(
    file: Path, output: Path | None, show: bool, port: int, force: bool, as_json: bool, title: str
) -> None:
    """Write a static web page that searches FILE in the browser.

    The page runs on the visitor's device, also offline. Any static web server can serve the
    folder. With --open but without -o, the page is deleted when the command ends.

    \b
    embits page glove.safetensors -o site --title "Words of GloVe"
    embits page glove.safetensors --open
    """
    if output is None and not show:
        raise click.UsageError("give a folder with -o DIR, or open the page with --open")
    with tempfile.TemporaryDirectory(prefix="embits-page-") as temporary:
        folder = output or Path(temporary)
        written = write_page(file, folder, title=title, overwrite=force)
        size = sum(path.stat().st_size for path in written)
        if as_json:
            print_json({"folder": str(folder), "files": len(written), "bytes": size})
        elif output:
            click.echo(f"{folder}: {len(written)} files, {megabytes(size)}")
        if not show:
            return
        with serve(folder, port) as server, contextlib.suppress(KeyboardInterrupt):
            address = f"http://127.0.0.1:{server.server_port}/"
            click.echo(f"{address}  (press Ctrl-C to stop)", err=True)
            webbrowser.open(address)
            server.serve_forever()
