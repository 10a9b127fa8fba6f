"""Arguments and options that several verbs share, what they complete to, and jobs on Ray."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from embits.binary_vectors import BinaryRows
from embits.checks import MAX_BITS, whole
from embits.cli.output import megabytes, progress_bar, say, show
from embits.coders import DEFAULT_METHOD, METHODS
from embits.collection import Collection, load
from embits.columns import Condition
from embits.errors import ClusterError, InputError, first_line, from_extra
from embits.remote import is_address
from embits.search.metrics import METRICS
from embits.vectors import WordVectors

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)


class Address(click.Path):
    """A path, or an address, which stays a string; of an output, only with --ray."""

    def __init__(self, *, is_output: bool = False) -> None:
        super().__init__()
        self._is_output = is_output

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not is_address(value):
            return Path(value)
        if self._is_output and ctx is not None and not ctx.params.get("ray"):
            raise click.UsageError(f"{value} is not a local path: add --ray", ctx)
        return value


ADDRESS = Address()
vectors_argument = click.argument(
    "vectors",
    type=ADDRESS,
    nargs=-1,
    required=True,
    metavar="VECTORS...",
    callback=lambda _, __, paths: paths[0] if len(paths) == 1 else paths,
)


class _Range(click.ParamType[Any]):
    """A number in a range, which help and errors give in words."""

    min: Any
    max: Any

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "N"

    def _describe_range(self) -> str:
        if self.max is not None:
            return f"{self.min} to {self.max}"
        return "" if self.min is None else f"{self.min} or more"


class WholeNumber(_Range, click.IntRange):
    """A whole number in a range."""

    name = "whole number"


class DecimalNumber(_Range, click.FloatRange):
    """A number in a range."""

    name = "number"

    def convert(self, value: Any, *about: Any) -> float:
        """As click calls it."""
        number: float = super().convert(value, *about)
        return self.fail(f"{value} is not a number", *about) if number != number else number


class CountOr(click.ParamType[int | str]):
    """A number from 1, or a word such as auto."""

    def __init__(self, word: str) -> None:
        self.word = self.name = word

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"N|{self.word}"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """As click calls it."""
        return self.word if value == self.word else WholeNumber(1).convert(value, param, ctx)


class Listed(click.ParamType[list[object]]):
    """Values with commas between them, each once; `parse` raises an error of what is none."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], object],
        expected: str = "",
        every: Iterable[str] = (),
    ) -> None:
        self.name, self._parse, self._expected, self._every = name, parse, expected, every

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return self.name

    def convert(self, value: str, *about: Any) -> list[object]:
        """As click calls it."""
        if self._every and value == "all":
            return list(self._every)
        with contextlib.suppress(ValueError, KeyError):
            texts = filter(None, map(str.strip, value.split(",")))
            values = list(dict.fromkeys(map(self._parse, texts)))
            if values or not self._expected:
                return values
        return self.fail(f"{value!r}: expected {self._expected}", *about)


# -- arguments and options -------------------------------------------------------------------------

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
file_argument = click.argument("file", type=ADDRESS)
files_argument = click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
words_argument = click.argument("words", nargs=-1, required=True, metavar="WORD...")
file_option = functools.partial(click.option, type=FILE, metavar="FILE")
lengths_option = click.option(
    "--lengths", is_flag=True, help="Store the length of each vector, in a byte, for --metric dot."
)
cells_option = click.option(
    "--cells", type=CountOr("auto"), help="Store the codes in N cells, for `search --recall`."
)
method_option = click.option(
    "--method", type=click.Choice(list(METHODS)), default=DEFAULT_METHOD, help="The coder."
)


names_option = functools.partial(click.option, type=Listed("A,B", str))


def count(
    *names: str, least: int = 1, most: int | None = None, **settings: Any
) -> Callable[[Command], Command]:
    """An option whose value is a whole number."""
    return click.option(*names, type=WholeNumber(least, most), **settings)


def together(*options: Callable[..., Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help."""

    def added(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


_OPERATORS = "such as 'year >= 2020' (=, !=, <, <=, >, >=, in); of several, all must hold"


def conditions_option(help: str) -> Callable[[Command], Command]:
    """The option --where, of conditions on columns."""
    return click.option(
        "--where", metavar="CONDITION", multiple=True, help=f"{help}, {_OPERATORS}."
    )


# Files of what a search takes by these names.
filter_options = together(
    click.option(
        "--where", metavar="FILE|CONDITION", multiple=True,
        help="Find only these rows: a text file of ids, or a .npy of whole numbers (ids) or a "
        f"mask; or a condition on a column, {_OPERATORS}.",
    ),
    file_option("--exclude", help="Leave these rows out; the same formats."),
    file_option("--rows", help="In place of --where: a .npy of row numbers."),
)  # fmt: skip


def parsed(bits: BinaryRows, filters: dict[str, Any]) -> dict[str, Any]:
    """The values of `filter_options`, read and parsed once for many searches."""
    kinds = bits.current.columns.kinds if filters["where"] else {}
    read = read_filters(filters, len(bits), kinds)
    return {"where": bits.select(**read)} if read else {}


def read_filters(
    filters: dict[str, Any], n_rows: int | None = None, kinds: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The files of `filter_options` as ids, masks or row numbers; conditions on columns as such."""
    from embits.readers.arrays import map_npy
    from embits.readers.source import Source

    texts, files = filters["where"], {name: filters[name] for name in ("exclude", "rows")}
    conditions = [each for each in texts if _CONDITION.fullmatch(each) and not Path(each).is_file()]
    if conditions and len(conditions) < len(texts):
        raise click.UsageError("give --where as conditions, or as a FILE")
    if len(texts) > 1 and not conditions:
        raise click.UsageError("give --where one FILE, or conditions such as 'year >= 2020'")
    if texts and not conditions:
        files["where"] = Path(texts[0])
    read: dict[str, Any] = (
        {"where": parse_conditions(conditions, kinds or {})} if conditions else {}
    )
    for name, path in files.items():
        if path is not None and (name == "rows" or path.suffix.lower() == ".npy"):
            read[name] = map_npy(Source(path), "a .npy of row numbers")
        elif path is not None:
            read[name] = read_ids(path, n_rows)
    return read


_CONDITION = re.compile(r"(?s)\s*(.+?)\s*(!=|<=|>=|==?|<|>|\bin\b)\s*(?![<>=!~])(.*?)\s*")
_QUOTES = r"""'[^']*'|"[^"]*\""""
_ITEM = re.compile(rf"""\s*({_QUOTES}|[^,"'\s][^,"]*?)\s*(?:,|\Z)""")
_PARSERS: dict[str, Callable[[str], float]] = {
    "int": lambda text: int(text) if text.lstrip("+-").isdecimal() else float(text),
    "float": float,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
}


def parse_conditions(texts: Iterable[str], kinds: Mapping[str, str]) -> list[Condition]:
    """Conditions such as "year >= 2020" or "label in news, null", on columns of these kinds."""
    found = []
    for text in texts:
        match = _CONDITION.fullmatch(text)
        if not match:
            expected = "expected one such as 'year >= 2020' (=, !=, <, <=, >, >=, in)"
            raise click.UsageError(f"the condition {text!r} has no operator, {expected}")
        name, op, value = match[1], match[2].replace("==", "="), match[3]
        if re.search(r"\b(and|or)\b.*(=|<|>|\bin\b)", re.sub(_QUOTES, "", value)):
            hint = "give --where once for each that must hold, or quote the value; one of several"
            hint += " values is 'label in news, sport'"
            raise click.UsageError(f"{text!r} looks like several conditions: {hint}")
        if op != "in" and value[:1] in ("'", '"') and not re.fullmatch(_QUOTES, value):
            hint = "put it into quotes of the other kind: label = 'say \"hi\"'"
            raise click.UsageError(f"{text!r}: the value has quotes within or an open one: {hint}")
        listed = value[1:-1] if value[:1] + value[-1:] in ("()", "[]") else value
        values = _ITEM.findall(listed) if op == "in" else [value]
        if op == "in" and not re.fullmatch(f"(?:{_ITEM.pattern})+", listed):
            raise click.UsageError(f"{text!r}: expected values as in 'label in news, \"a, b\"'")
        parse = _PARSERS.get(kinds.get(name, "").removeprefix("list of "), str)
        try:
            plain = [v[1:-1] if re.fullmatch(_QUOTES, v) else v for v in values]
            parsed = [None if v == "null" else parse(p) for v, p in zip(values, plain, strict=True)]
        except (ValueError, KeyError):
            raise InputError(f"{text!r}: column {name!r} holds {kinds[name]}") from None
        found.append(Condition(name, op, parsed if op == "in" else parsed[0]))
    return found


def read_ids(path: Path, n_rows: int | None = None) -> list[str]:
    """The ids of some of `n_rows`, in a file of words; empty lines are skipped."""
    from embits.readers.words import read_words

    return [each for each in read_words(path, n_rows=n_rows) if each]


def metric_option(
    default: str | None = None, needs: str | None = None
) -> Callable[[Command], Command]:
    """The option --metric: all metrics, or those whose queries need no more than `needs`."""
    metrics = [each for each in METRICS.values() if needs in (None, each.needs)]
    help = "; ".join(f"{each.name}: {each.meaning}" for each in metrics)
    names = [each.name for each in metrics]
    if default is None:
        help += " [default: asymmetric for vectors, hamming for ids]"
    choice = click.Choice(names)
    return click.option("--metric", type=choice, default=default, help=f"{help}.")


def output_option(
    kind: click.ParamType[Any] = FILE, *, help: str = "File to write.", **settings: Any
) -> Callable[[Command], Command]:
    """The option -o; it is required unless it has a default."""
    settings.setdefault("required", "default" not in settings)
    return click.option("-o", "--output", type=kind, help=help, **settings)


def force_option(
    *other_names: str, help: str = "Replace an existing file."
) -> Callable[[Command], Command]:
    """The option --force."""
    return click.option("--force", *other_names, "force", is_flag=True, help=help)


def _ids(context: click.Context, _: click.Parameter, name: str | None) -> str | bool | None:
    if context.meta["embits.no_ids"] and name is not None:
        raise click.UsageError("--no-ids and --ids exclude each other")
    return False if context.meta["embits.no_ids"] else name


# The options of every verb that reads float vectors, by the names of Python's arguments.
reading_options = together(
    click.option("--limit", type=WholeNumber(min=1), help="Read only the first N rows."),
    file_option("--words", help="Words (ids) of a matrix: one per line, or Parquet."),
    click.option("--encoding", default="utf-8", help="How words are encoded in text and .bin."),
    click.option(
        "--ids", metavar="COLUMN", callback=_ids,
        help="Column of the ids in Parquet [default: id, ids, _id, word or key].",
    ),
    click.option(
        "--no-ids", is_flag=True, is_eager=True, expose_value=False,
        callback=lambda context, _, given: context.meta.update({"embits.no_ids": given}),
        help="Number the rows; take no ids from the file, or from one beside a matrix.",
    ),
    click.option(
        "--column", metavar="COLUMN", help="Column of vectors in Parquet, if it has several."
    ),
    click.option(
        "--repeats", type=click.Choice(["first", "refuse"]),
        help="Keep the first row of a repeated word (id), or refuse the file [default: refuse"
        " if the words are in another file, or in Parquet].",
    ),
    click.option(
        "--skip-bad", "on_bad", is_flag=True, help="Skip bad rows instead of stopping.",
        callback=lambda _, __, given: "skip" if given else "raise",
    ),
)  # fmt: skip


def collection_at(path: Path, hint: str, timeout: float = 0) -> Collection:
    """A collection to change or ask; a single file is refused with a hint."""
    opened = load(path)
    if not isinstance(opened, Collection):
        raise InputError(f"{path} is a single file{hint}")
    opened.timeout = timeout
    return opened


def read(path: Path, *, quiet: bool, **reading: Any) -> WordVectors:
    """Read float vectors with a progress bar; `reading` are the values of `reading_options`."""
    from embits.readers import read_vectors

    with progress_bar("reading", quiet=quiet) as progress:
        return read_vectors(path, progress=progress, **reading)


def params_option(help: str) -> Callable[[Command], Command]:
    """The option --param NAME=VALUE, which may be repeated; --option is its other name."""
    names, help = ("--param", "--option", "params"), f"{help} May be repeated."
    return click.option(
        *names, multiple=True, metavar="NAME=VALUE", callback=_named_values, help=help
    )


def _named_values(_: click.Context, param: click.Parameter, texts: list[str]) -> dict[str, Any]:
    """NAME=VALUE texts as a dictionary; numbers, true and false are converted."""
    values: dict[str, Any] = {}
    for text in texts:
        name, _sign, value = text.partition("=")
        if not name or not value:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=param.opts[0])
        name = name.replace("-", "_")
        values[name] = {"true": True, "false": False}.get(value.lower(), value)
        for kind in (float, int):
            with contextlib.suppress(ValueError):
                values[name] = kind(value)
    return values


def choices_option(
    *names: str, choices: Iterable[str], **settings: Any
) -> Callable[[Command], Command]:
    """An option NAME,...: some of these names, or all."""
    known = {name: name for name in choices}
    kind = Listed("NAME,...", known.__getitem__, f"some of {', '.join(known)}, or all", [*known])
    return click.option(*names, type=kind, **settings)


def numbers_option(
    *names: str, example: str, least: int = 0, most: int | None = None, **settings: Any
) -> Callable[[Command], Command]:
    """An option N,...: whole numbers from `least` to `most`."""
    bounds = f"from {least}" if most is None else f"from {least} to {most}"
    kind = Listed(
        "N,...",
        lambda text: whole("", int(text), least, most),
        f"numbers {bounds}, such as {example}",
    )
    return click.option(*names, type=kind, **settings)


widths_option = functools.partial(
    numbers_option, "--bits", example="64,128,256", least=1, most=MAX_BITS
)


# -- --ray: encode, binarize and search on a Ray cluster, from Parquet to Parquet -----------------


OUTPUT_ADDRESS = Address(is_output=True)
OUTPUT_HELP = "File to write; with --ray, the folder."
ENCODED = "{rows:,} rows × {bits} bits in {target}: {size} in {parts} parts"
FOUND = "{rows:,} results of {queries:,} queries in {target}: {size}"
Cluster: TypeAlias = Callable[[Callable[..., dict[str, Any]], str, bool], None]


def _run_on_ray(
    address: str | None,
    options: dict[str, Any],
    job: Callable[..., dict[str, Any]],
    line: str,
    as_json: bool,
) -> None:
    """Run `job(embits.integrations.ray, **options)` on a cluster, and print its facts."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
    warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
    warnings.filterwarnings("ignore", category=ResourceWarning)
    with from_extra("--ray", "ray"):
        import ray
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is None:
        settings |= {"num_cpus": options["workers"], "include_dashboard": False}
    try:
        ray.init(address or "local", **settings)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(f"no Ray cluster at {address!r}: {first_line(error)}") from None
    try:
        from embits.integrations import ray as integration

        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        ray.data.DataContext.get_current().enable_progress_bars = False
        with progress_bar("running", quiet=as_json) as progress:
            facts = job(integration, progress=progress, **options)
    finally:
        ray.shutdown()
    show(facts, line.format(size=megabytes(facts["bytes"]), **facts), as_json)
    if facts.get("skipped") and not as_json:
        say(f"note: {facts['skipped']:,} bad rows skipped")


def _ray_options(
    refused: tuple[str, ...], own: dict[str, Any], force: str
) -> Callable[[Command], Command]:
    """Give a verb options that need --ray, and their values as `cluster`; None without --ray."""

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(ray: bool, ray_address: str | None, **others: Any) -> Any:
            given = {name: others.pop(name) for name in own}
            if not ray:
                if ray_address or any(value is not None for value in given.values()):
                    raise click.UsageError(f"--ray-address, --{', --'.join(own)} need --ray")
                return command(cluster=None, **others)
            if isinstance(others.get("vectors"), tuple):
                raise click.UsageError("--ray takes one file or one folder")
            if wrong := [name for name in refused if others.get(name)]:
                raise click.UsageError(f"--{wrong[0].split('_')[0]} cannot be used with --ray")
            given |= {name: others.pop(name) for name in _PASSED_ON if name in others}
            given |= {"ids": given["ids"] or None, "overwrite": others["force"]}
            return command(cluster=functools.partial(_run_on_ray, ray_address, given), **others)

        for option in (force_option("--overwrite", help=force), *own.values(), *_SHARED):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorated


_PASSED_ON = ("column", "ids", "on_bad", "repeats", "lengths")  # of the options of a verb
_SHARED = (
    click.option("--ray-address", metavar="NAME", help="A cluster, or auto [default: start one]."),
    click.option("--ray", is_flag=True, is_eager=True, help="Run on Ray, from Parquet to Parquet."),
)
_WORKERS = count("--workers", help="With --ray: parallel tasks.")
_KEEP = names_option("--keep", help="With --ray: columns to keep [default: all others].")
_COLUMN = click.option("--column", metavar="COLUMN", help="With --ray: column of the vectors.")
_IDS = click.option("--ids", metavar="COLUMN", help="With --ray: column that names the queries.")
ray_options = _ray_options(
    ("limit", "words", "cells"),
    {"keep": _KEEP, "workers": _WORKERS},
    "Replace a file that does not hold codes, or a folder.",
)
search_ray_options = _ray_options(
    ("tsv", "rescore", "oversample", "floats", "words_file", "recall", "probes"),
    {"column": _COLUMN, "ids": _IDS, "workers": _WORKERS},
    "Replace an existing file.",
)
