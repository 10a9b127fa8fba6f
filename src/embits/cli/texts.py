"""Texts to answers: `embits index` and `embits ask`."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli import options
from embits.cli.output import (
    counted,
    megabytes,
    print_json,
    printable,
    progress_bar,
    show,
    size_on_disk,
)
from embits.jobs.texts import index_texts
from embits.text.answers import answer

_SHOWN = 300  # characters of a passage that are printed


@click.command()
@click.argument("texts", type=click.Path(path_type=Path), nargs=-1, required=True)
@options.output_option(options.FILE, help="Folder of the new collection.")
@click.option("--encoder", metavar="NAME", help="What encodes texts [default: WordLlama's table].")
@options.count("--bits", "n_bits", default=256, help="Bits of a passage.")
@options.json_option
def index(
    texts: tuple[Path, ...], output: Path, encoder: str | None, n_bits: int, as_json: bool
) -> None:
    """Make a collection of TEXTS that `embits ask` searches.

    TEXTS are files of JSON lines or CSV with a field `text`, text or Markdown files, or folders of
    them. Other fields become columns, and `id` or `_id` the id. Long texts are cut into passages
    with the ids ID#0, ID#1, …

    NAME is the file of a text encoder or of words, the folder of a static model, or a model of
    sentence-transformers.

    \b
    embits index articles.jsonl -o notes
    embits ask notes "how do I reset my password?"
    """
    with progress_bar("index", quiet=as_json) as progress:
        notes, done = index_texts(texts, output, encoder, n_bits, progress=progress)
    size = size_on_disk(output)
    facts = {"collection": str(output), **done, "rows": len(notes), "bytes": size}
    skipped = f", {done['skipped']:,} skipped: no known word" if done["skipped"] else ""
    line = f"{counted(done['added'], 'passage')} added{skipped}, {megabytes(size)}"
    show(facts, f"{output}: {line}", as_json)


@click.command()
@click.argument("collection", type=options.FILE)
@click.argument("text")
@options.count("-k", default=5, help="Answers.")
@click.option("--hybrid", is_flag=True, help="Search for the words too (BM25).")
@options.conditions_option("Find only passages that fulfil a condition on a column")
@click.option("--least", type=options.DecimalNumber(), metavar="S", help="Least similarity.")
@options.json_option
def ask(
    collection: Path,
    text: str,
    k: int,
    hybrid: bool,
    where: tuple[str, ...],
    least: float | None,
    as_json: bool,
) -> None:
    """Print the passages of COLLECTION that answer TEXT.

    If nothing is similar enough to TEXT, there is no answer. The least similarity is one that
    random letters seldom reach, and 0.7 of it for passages that have a word of TEXT.

    \b
    embits ask notes "how do I reset my password?"
    embits ask notes "interest rates" -k 3 --hybrid --where year>=2020 --json
    """
    notes = options.collection_at(collection, ": `embits index` makes collections of texts")
    filters = options.parse_conditions(where, notes.manifest.columns) if where else None
    answers = answer(
        notes.snapshot(), notes.text_encoder, text, k, hybrid=hybrid, where=filters, threshold=least
    )
    if as_json:
        listed = [each._asdict() | {"score": round(each.score, 4)} for each in answers]
        print_json({"query": text, "answers": listed})
        return
    if not answers:
        hint = "" if least is not None else " (`--least 0` prints the nearest passages)"
        click.echo(f"no answer in {printable(str(collection))}{hint}")
    for each in answers:
        head = f"{each.score:.2f}  {each.id}  {each.title or ''}"
        line = " ".join((each.text or "").split())
        line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]} …"
        click.echo(f"{printable(head.rstrip())}\n      {printable(line)}")
