"""Texts to answers: `embits index`, `embits ask`, and texts for `embits add`."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np

from embits.cli import options
from embits.cli.output import counted, megabytes, print_json, printable, progress_bar, show
from embits.cli.output import size_on_disk as size
from embits.coders import NearLossless
from embits.collection import Collection, load
from embits.collection.opening import opened_or_undone
from embits.errors import InputError, TrainingWarning
from embits.file.contents import write_coder
from embits.text.answers import (
    Encoder,
    keep_encoder,
    least_score,
    sentence_transformer,
    vectors_of,
)
from embits.text.encoder import TextEncoder
from embits.text.passages import Passage, read_passages

_BATCH = 50_000  # passages at a time
_ENOUGH = 2000  # passages that a coder is fitted on alone
_CONDITION = re.compile(r"([^<>=]+)(>=|<=|=)(.*)", re.DOTALL)
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
    texts: tuple[Path, ...],
    output: Path,
    encoder: str | None,
    n_bits: int,
    as_json: bool,
) -> None:
    """Make a collection of TEXTS that `embits ask` searches.

    TEXTS are files of JSON lines or CSV with a field `text`, text or Markdown files, or folders of
    them. Other fields become columns, and `id` or `_id` the id. Long texts are cut into passages
    with the ids ID#0, ID#1, …

    \b
    embits index articles.jsonl -o notes
    embits ask notes "how do I reset my password?"
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        hint = f"`embits add {output} TEXTS` adds to a collection"
        raise InputError(f"{output} exists: choose another output; {hint}")
    passages = _read(texts)
    if not passages:
        raise InputError("there is no text to index")
    with progress_bar("encoder", quiet=as_json) as progress:
        chosen: Any
        if encoder is not None and not Path(encoder).exists():
            chosen = sentence_transformer(encoder)
        elif encoder is not None:
            chosen = TextEncoder(encoder).opened(progress)
        else:
            chosen = TextEncoder.from_static(progress=progress)
    sample = [each.indexed for each in passages[:: -(-len(passages) // _BATCH)]]
    if isinstance(chosen, TextEncoder):
        chosen.whiten = chosen.whiten if len(sample) >= _ENOUGH else 0
        chosen.fit(sample)
    vectors = vectors_of(chosen, sample)
    vectors = vectors[vectors.any(axis=1)]
    if isinstance(chosen, TextEncoder) and len(vectors) < _ENOUGH:
        vectors = np.concatenate([vectors, chosen.pseudo_vectors(_ENOUGH)])
    with progress_bar("codes", quiet=as_json) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        coder = NearLossless(n_bits).fit(vectors, progress=progress)
    with tempfile.TemporaryDirectory() as folder:
        write_coder(Path(folder, "coder"), coder)
        with opened_or_undone(output, Path(folder, "coder")) as notes:
            keep_encoder(notes.path, chosen if isinstance(chosen, TextEncoder) else str(encoder))
            done = _add(notes, chosen, passages, update=False)
    _show(output, notes, done, as_json)


def add_texts(path: Path, texts: Path, update: bool, timeout: float, as_json: bool) -> None:
    """`embits add` of texts to a collection that `embits index` made."""
    notes = _notes(path)
    notes.timeout = timeout
    done = _add(notes, notes.text_encoder, _read([texts]), update)
    _show(path, notes, done, as_json)


@click.command()
@click.argument("collection", type=options.FILE)
@click.argument("text")
@options.k_option("-k", default=5, help="Answers.")
@click.option("--hybrid", is_flag=True, help="Search for the words too (BM25).")
@click.option("--where", multiple=True, metavar="CONDITION", help="Only rows whose column has a "
              "value: label=news, year>=2020, year<=2024. May be repeated.")  # fmt: skip
@click.option("--least", type=float, metavar="S", help="Least similarity of an answer [default: "
              "that which random letters seldom reach].")  # fmt: skip
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
    notes = _notes(collection)
    encoder = notes.text_encoder
    bits, filters = notes.snapshot(), _conditions(where)
    vector = vectors_of(encoder, [text])[0]
    answers: list[dict[str, Any]] = []
    bound = (least_score(bits, encoder) if least is None else least) if len(bits) else 0
    meant = notes.search_texts(text, k, where=filters)
    if vector.any() and len(meant.rows) and meant[0][0] >= bound:
        found = notes.search_texts(text, k, hybrid=True, where=filters) if hybrid else meant
        for id, score, shown in zip(found.ids, found[0], found.column("text"), strict=True):
            if hybrid or score >= bound:
                answers.append({"id": id, "score": round(float(score), 4), "text": shown})
    if as_json:
        print_json({"query": text, "answers": answers})
        return
    if not answers:
        click.echo(f"no answer in {printable(str(collection))}")
    for answer in answers:
        line = " ".join(answer["text"].split())
        line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]} …"
        click.echo(f"{answer['score']:.2f}  {printable(answer['id'])}\n      {printable(line)}")


def _notes(path: Path) -> Collection:
    opened = load(path)
    if not isinstance(opened, Collection):
        raise InputError(f"{path} is a single file: `embits index` makes collections of texts")
    return opened


def _read(paths: Iterable[Path]) -> list[Passage]:
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
    return list(read_passages(list(paths)))


def _add(notes: Collection, encoder: Encoder, passages: list[Passage], update: bool) -> Any:
    """Encode passages and add them; those without a known token are left out."""
    names = sorted({name for each in passages for name in each.fields})
    done, waiting = {"added": 0, "skipped": 0}, iter(passages)
    stale = _stale(notes, passages) if update else []
    while batch := list(islice(waiting, _BATCH)):
        vectors = vectors_of(encoder, [each.indexed for each in batch])
        kept = np.flatnonzero(vectors.any(axis=1))
        rows = [batch[row] for row in kept]
        columns: dict[str, Any] = {"text": [each.text for each in rows]}
        columns |= {name: [each.fields.get(name) for each in rows] for name in names}
        if rows:
            put = notes.upsert if update else notes.add
            put(vectors[kept], [each.id for each in rows], columns=columns)
        done["added"] += len(rows)
        done["skipped"] += len(batch) - len(rows)
    if stale:
        notes.remove(stale)
    return done


def _stale(notes: Collection, passages: list[Passage]) -> list[str]:
    """Passages of earlier versions of texts that the new ones do not replace."""
    new = {each.id for each in passages}
    stale = []
    for text in {re.sub(r"#\d+$", "", id) for id in new}:
        numbers = iter(range(1 << 30))
        found = [text] if text in notes else []
        while (id := f"{text}#{next(numbers)}") in notes:
            found.append(id)
        stale += [id for id in found if id not in new]
    return stale


def _conditions(texts: Iterable[str]) -> dict[str, Any] | None:
    """Conditions such as year>=2020 as a filter on columns."""
    where: dict[str, Any] = {}
    for text in texts:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise click.BadParameter(f"{text!r}, expected COLUMN=VALUE, COLUMN>=N or COLUMN<=N")
        name, sign, value = match[1].strip(), match[2], _value(match[3].strip())
        if sign == "=":
            where[name] = value
        else:
            known = where.get(name)
            low, high = known if isinstance(known, tuple) else (None, None)
            where[name] = (value, high) if sign == ">=" else (low, value)
    return where or None


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _show(path: Path, notes: Collection, done: dict[str, int], as_json: bool) -> None:
    n_bytes = size(path)
    facts = {"collection": str(path), **done, "rows": len(notes), "bytes": n_bytes}
    skipped = f", {done['skipped']:,} skipped: no known word" if done["skipped"] else ""
    added = f"{counted(done['added'], 'passage')} added{skipped}"
    line = f"{path}: {added}; {counted(len(notes))}, {megabytes(n_bytes)}"
    show(facts, line, as_json)
