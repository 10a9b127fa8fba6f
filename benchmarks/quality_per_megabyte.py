"""Agreement with human similarity scores against the size of a file of word vectors.

    python benchmarks/quality_per_megabyte.py NAME=VECTORS --data DATA
        [--cuts 20000,50000,100000] [--bits 64,128,256,512] [--neural 64,128] [--target similarity]
        [--folder FOLDER] [--out FILE.json] [--embits-only]

VECTORS is a file that `embits binarize` reads, most frequent words first. embits is fitted once a
width, on all words; smaller vocabularies are the first rows (`bits.subset`). Every file is written,
its size is read from the disk, and it is opened again before it is scored. Files of embits
stay in --folder, and a second run does not fit them again. With --embits-only, the other files are
those that FILE.json has. --neural are the widths of `Neural`. Decoded vectors are compared as
`similarity(metric="decoded")` does, whitened ones with the target "similarity".

The score is the Fisher mean of Spearman's correlations over the similarity sets of DATA.
pair_scores.py says how pairs with unknown words count. WordLlama (`pip install wordllama`) and
compress-fasttext are measured where they are installed. Needs faiss-cpu.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import embits
import small_files
from embits.arrays import unit_rows
from embits.evaluation import BitSpace, DataFolder, FloatSpace, Lookup
from embits.evaluation.data import Pairs
from embits.evaluation.spaces import Space
from pair_scores import Scorer
from provenance import provenance

# Not measured: the weights are on the Hugging Face Hub. `model.safetensors` and `tokenizer.json`.
HUB = "https://huggingface.co/minishlab"
PUBLISHED = [
    {"name": f"model2vec {name}", "bytes": size, "source": f"{HUB}/{name}/tree/main"}
    for name, size in (
        ("potion-base-2M", 8_240_000),
        ("potion-base-4M", 15_780_000),
        ("potion-base-8M", 30_880_000),
    )
]
# What embits leaves out of a file, by the name of the variant.
VARIANTS: dict[str, dict[str, Any]] = {
    "embits, decoded": {"without": ["subwords"], "half_decoder": True},
    "embits": {"without": ["coder", "subwords"]},
    "embits, no order": {"without": ["coder", "subwords", "order"]},
}
Row = dict[str, Any]
Files = Iterator[tuple[Row, Space]]


class Options(NamedTuple):
    cuts: list[int]
    bits: dict[str, list[int]]
    target: str


# -- files of word vectors -------------------------------------------------------------------------


@cache
def lookup(text: str) -> Lookup:
    """The lookup of words, one a line; many files have the same words."""
    return Lookup(text.split("\n"))


def float_files(vectors: embits.WordVectors, cuts: list[int], folder: Path) -> Files:
    """A file of each method without embits and each vocabulary, opened again."""
    words = list(vectors.words or [])
    for method in small_files.methods(unit_rows(vectors.matrix)):
        for n in cuts:
            path = folder / "rival.npz"
            size = small_files.write(path, words[:n], method.encode(n))
            read, matrix = small_files.read(path)
            row = {"method": method.name, "size": method.size, "words": n, "bytes": size}
            yield row, FloatSpace(read, matrix, lookup("\n".join(read)))


def embits_files(source: Path, cuts: list[int], options: Options, folder: Path) -> Files:
    """A file of each width, variant and vocabulary, opened again."""
    settings = {"random_state": 0, "target": options.target}
    for method, n_bits in [(key, n) for key, widths in options.bits.items() for n in widths]:
        whole = folder / f"{method}-{options.target}-{n_bits}.safetensors"
        if not whole.exists():
            embits.binarize_to_file(source, whole, n_bits=n_bits, method=method, **settings)
        for n in cuts:
            first = embits.load(whole).subset(rows=range(n))
            for name, parts in VARIANTS.items():
                path = folder / "variant.safetensors"
                first.slim(**parts).save(path)
                bits = embits.load(path)
                rows = lookup("\n".join(bits.words))
                space: Space = BitSpace(bits, rows)
                if name.endswith("decoded"):
                    space = FloatSpace(bits.words, bits.coder.rebuilt(bits.codes), rows)
                called = name.replace("embits", "embits Neural") if method == "neural" else name
                row = {"method": called, "size": n_bits, "words": n, "bytes": path.stat().st_size}
                yield row, space


def compress_fasttext_files(vectors: embits.WordVectors, cuts: list[int], folder: Path) -> Files:
    """compress-fasttext's quantizer at its defaults: 100 parts of 3 dimensions, 255 centroids."""
    if importlib.util.find_spec("compress_fasttext") is None or vectors.matrix.shape[1] != 300:
        return
    from compress_fasttext.navec_like import PQ
    from compress_fasttext.quantization import quantize

    X, words = unit_rows(vectors.matrix), list(vectors.words or [])
    coded = quantize(X, qdim=100, centroids=255, sample=min(len(X), small_files.PQ_ROWS))
    for n in cuts:
        path = folder / "compress_fasttext.npz"
        image = np.frombuffer(coded.sampled(np.arange(n)).as_bytes, np.uint8)
        size = small_files.write(path, words[:n], {"quantized": image})
        with np.load(path) as archive, (folder / "quantized").open("w+b") as file:
            file.write(archive["quantized"].tobytes())
            file.seek(0)
            matrix = np.asarray(PQ.from_file(file).unpack(), np.float32)
        row = {"method": "compress-fasttext", "size": 100, "words": n, "bytes": size}
        yield row, FloatSpace(words[:n], matrix, lookup("\n".join(words[:n])))


def wordllama_files(datasets: Mapping[str, Pairs], folder: Path) -> Files:
    """The model in WordLlama's wheel, whole and cut to fewer dimensions, with its tokenizer."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        return
    from safetensors.numpy import load_file, save_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    package = Path(spec.origin).parent
    shipped = package / "weights/l2_supercat_256.safetensors"
    tokenizer = package / "tokenizers/l2_supercat_tokenizer_config.json"
    words = sorted({word for pairs in datasets.values() for word in (*pairs.first, *pairs.second)})
    for dims in (64, 128, 256):
        path = folder / "wordllama.safetensors"
        [(name, weights)] = load_file(shipped).items()
        save_file({name: np.ascontiguousarray(weights[:, :dims])}, path)
        path = shipped if dims == weights.shape[1] else path
        model = WordLlamaInference(load_file(path)[name], Tokenizer.from_file(str(tokenizer)))
        size = path.stat().st_size + tokenizer.stat().st_size
        row = {"method": "WordLlama", "size": dims, "words": len(weights), "bytes": size}
        yield row, FloatSpace(words, np.asarray(model.embed(words), np.float32))


# -- the run ---------------------------------------------------------------------------------------


def measure(
    source: Path, datasets: Mapping[str, Pairs], options: Options, folder: Path, others: list[Row]
) -> Row:
    """All files of one source of vectors, or those of embits beside the others given."""
    start = time.process_time()
    vectors = embits.read_vectors(source)
    n, dims = vectors.matrix.shape
    cuts = [cut for cut in options.cuts if cut < n] + [n]
    scorer = Scorer(datasets, Lookup(list(vectors.words or [])[: cuts[0]]))
    rows = list(others)
    rivals = chain(
        wordllama_files(datasets, folder),
        float_files(vectors, cuts, folder),
        compress_fasttext_files(vectors, cuts, folder),
    )
    for row, space in chain(() if others else rivals, embits_files(source, cuts, options, folder)):
        rows.append({**row, **scorer.row(space)})
        print(json.dumps(rows[-1]), flush=True)
    floats = scorer.row(FloatSpace(list(vectors.words or []), vectors.matrix))
    seconds = round(time.process_time() - start)
    return {"words": n, "dims": dims, "processor_seconds": seconds, "floats": floats, "rows": rows}


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("source", metavar="NAME=VECTORS")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cuts", type=numbers, default=[20_000, 50_000, 100_000])
    parser.add_argument("--bits", type=numbers, default=[64, 128, 256, 512])
    parser.add_argument("--neural", type=numbers, default=[])
    parser.add_argument("--target", default="similarity")
    parser.add_argument("--embits-only", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if importlib.util.find_spec("faiss") is None:
        raise SystemExit("product quantization needs FAISS: pip install faiss-cpu")
    datasets = DataFolder.at(arguments.data).similarity()
    widths = {"near-lossless": arguments.bits, "neural": arguments.neural}
    options = Options(arguments.cuts, widths, arguments.target)
    pairs = {name: len(of) for name, of in datasets.items()}
    result: Row = {"pairs": pairs, "published": PUBLISHED, "sources": {}}
    if arguments.out and arguments.out.exists():
        result["sources"] = json.loads(arguments.out.read_text())["sources"]
    with tempfile.TemporaryDirectory() as temporary:
        name, _, path = arguments.source.partition("=")
        folder = (arguments.folder or Path(temporary)) / name
        folder.mkdir(parents=True, exist_ok=True)
        stored = result["sources"].get(name, {}).get("rows", []) if arguments.embits_only else []
        others = [row for row in stored if not row["method"].startswith("embits")]
        measured = measure(Path(path), datasets, options, folder, others)
        about = provenance([0], vectors=Path(path))
        result["sources"][name] = {"about": about, **measured}
    if arguments.out:
        arguments.out.write_text(compact(result))


def compact(result: Row) -> str:
    """JSON with one measured file a line."""
    text = json.dumps(result, indent=1)
    return re.sub(r"\{[^{}]*\}", lambda inner: " ".join(inner[0].split()), text) + "\n"


if __name__ == "__main__":
    try:
        main()
    except embits.EmbitsError as error:
        raise SystemExit(str(error)) from None
