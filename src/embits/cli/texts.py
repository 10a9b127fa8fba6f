"""Texts to answers: `embits index` and `embits ask`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
from embits.text.answers import SHARING, Words, least_score, share_words, vectors_of

_SHOWN = 300  # characters of a passage that are printed


@click.command()
@click.argument("texts", type=click.Path(path_type=Path), nargs=-1, required=True)
@options.output_option(options.FILE, help="Folder of the new collection.")
@click.option("--encoder", metavar="NAME", help="File of a text encoder or of "
              "words, folder of a static model, or name of a model of sentence-transformers "
              "[default: WordLlama's table].")  # fmt: skip
@click.option("--bits", "n_bits", type=options.WholeNumber(min=1), default=256, help="Bits of a "
              "passage.")  # fmt: skip
@options.json_option
def index(
    texts: tuple[Path, ...], output: Path, encoder: str | None, n_bits: int, as_json: bool
) -> None:
    """Make a collection of TEXTS that `embits ask` searches.

    TEXTS are files of JSON lines or CSV with a field `text`, text or Markdown files, or folders of
    them. Other fields become columns, and `id` or `_id` the id. Long texts are cut into passages
    with the ids ID#0, ID#1, …

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
@options.k_option("-k", default=5, help="Answers.")
@click.option("--hybrid", is_flag=True, help="Search for the words too (BM25).")
@click.option("--where", multiple=True, metavar="CONDITION", help="Only passages that pass, such "
              "as 'year >= 2020' (=, !=, <, <=, >, >=, in). May be repeated.")  # fmt: skip
@click.option("--least", type=options.DecimalNumber(), metavar="S", help="Least similarity of an "
              "answer [default: what random letters seldom reach; 0.7 of it with a word in "
              "common].")  # fmt: skip
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

    If nothing is similar enough to TEXT, there is no answer.

    \b
    embits ask notes "how do I reset my password?"
    embits ask notes "interest rates" -k 3 --hybrid --where year>=2020 --json
    """
    notes = options.collection_at(collection, ": `embits index` makes collections of texts")
    encoder = notes.text_encoder
    filters = options.parse_conditions(where, notes.manifest.columns) if where else None
    bits = notes.snapshot()
    vector = vectors_of(encoder, [text])[0]
    answers: list[dict[str, Any]] = []
    bound = least_score(bits, encoder) if least is None else least
    found = notes.search_texts(text, k, hybrid=hybrid and len(bits) > 0, where=filters)
    meant = bits.search(vector, len(bits)) if hybrid else found
    scores = dict(zip(meant.rows.tolist(), meant[0].tolist(), strict=True))
    is_unknown = hybrid and not vector.any()  # then words alone can answer
    words = Words.of(bits).scores(text) if is_unknown and len(bits) else ()
    held = Words.of(bits).hold_rare(text) if hybrid and least is None and len(bits) else ()
    known, none = notes.manifest.columns, [None] * len(found.rows)
    titles, texts = (found.column(c) if c in known else none for c in ("title", "text"))
    parts = zip(found.ids, found.rows.tolist(), found[0], titles, texts, strict=True)
    for id, row, score, title, shown in parts:
        shares = least is None and share_words(text, f"{title or ''} {shown or ''}")
        near = vector.any() and scores[row] >= (SHARING * bound if shares else bound)
        if (is_unknown and words[row] > 0) or (len(held) and held[row]) or near:
            score = round(float(score), 4)
            answers.append({"id": id, "score": score, "title": title, "text": shown})
    if as_json:
        print_json({"query": text, "answers": answers})
        return
    if not answers:
        hint = "" if least is not None else " (`--least 0` prints the nearest passages)"
        click.echo(f"no answer in {printable(str(collection))}{hint}")
    for answer in answers:
        head = f"{answer['score']:.2f}  {answer['id']}  {answer['title'] or ''}"
        line = " ".join((answer["text"] or "").split())
        line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]} …"
        click.echo(f"{printable(head.rstrip())}\n      {printable(line)}")
