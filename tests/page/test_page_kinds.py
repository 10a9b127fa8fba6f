"""Pages of other files than words: texts, ids, rows, slim files and collections; and bad files."""

import hashlib
import json
import random

import numpy as np
import pytest

import embits
from embits.page import write_page
from tests.support.damage import resigned
from tests.support.javascript import CHROMIUM, clustered, needs_chromium, needs_packages, node

pytestmark = pytest.mark.slow
ROWS, QUERIES = 400, 300
PARTS = (
    "The council approved the budget", "Shares fell after the report", "<b>Breaking</b> & entering",
    "Zürich hosts the talks", "日本の首都は東京です", "rain is expected on Monday",
    "👩‍🚀 returned to Earth",
    "the striker scored twice", "a “quoted” remark of the minister's", "prices rose by 3 %",
)  # fmt: skip


def sentences():
    """Distinct texts of 20 to 400 letters, some with markup and other alphabets."""
    rng = random.Random(0)
    texts = [". ".join(rng.choices(PARTS, k=rng.randint(1, 9))) + f" ({i})." for i in range(ROWS)]
    texts[8] = "A headline\nand its text (8)."
    assert len(set(texts)) == ROWS
    return texts


def uuids():
    digests = [hashlib.md5(str(i).encode()).hexdigest() for i in range(ROWS)]
    return [f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in digests]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Files of several kinds with their pages, by name."""
    folder = tmp_path_factory.mktemp("kinds")
    x = clustered(ROWS, 1)
    coder = embits.NearLossless(96, steps=20).fit(x)
    ids = {
        "texts": sentences(),
        "numbers": [str(10_000 + 7 * i) for i in range(ROWS)],
        "uuids": uuids(),
        "rows": None,
    }
    files = {
        name: embits.BinaryVectors.encoded(embits.WordVectors(given, x), coder)
        for name, given in ids.items()
    }
    files["slim"] = files["texts"].slim()
    files["half"] = files["texts"].slim([], half_decoder=True)
    sparse = embits.WordVectors(ids["texts"], x)
    files["sparse"] = embits.binarize(sparse, 64, method="sparse", iterations=1)
    for name, bits in files.items():
        bits.save(folder / f"{name}.safetensors")
        write_page(folder / f"{name}.safetensors", folder / name)
    collection = embits.open_collection(folder / "news", coder)
    for rows in (slice(0, 150), slice(150, ROWS)):
        collection.add(x[rows], ids["texts"][rows])
    collection.remove(ids["texts"][3:5])
    write_page(folder / "news", folder / "collection")
    files["collection"] = embits.load(folder / "news")
    return folder, files


def bad_files(folder, good):
    """Files that a visitor may open by mistake, by what the page says about them."""
    whole = good.read_bytes()
    future = folder / "future.safetensors"
    future.write_bytes(whole)
    resigned(future, lambda header: header["__metadata__"].update(format_version="5"))
    bad = {
        "damaged or cut short: the file ends before its tensors do": whole[:-100],
        "cut short: 100 bytes, and its header alone has": whole[:100],
        "written in format version 5; this reader knows versions 1 to 4: use a newer embits": (
            future.read_bytes()
        ),
        "not a safetensors file: it has 0 bytes": b"",
        "not an embits file, or damaged": b"the quick brown fox jumps over the lazy dog",
    }
    paths = {}
    for i, (said, content) in enumerate(bad.items()):
        paths[said] = folder / f"bad-{i}.safetensors"
        paths[said].write_bytes(content)
    return {said: str(path) for said, path in paths.items()}


def test_the_policy_of_the_page_is_unchanged(pages):
    folder, _ = pages
    policy = (
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; "
        "img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; trusted-types embits; require-trusted-types-for 'script'"
    )
    html = (folder / "texts" / "index.html").read_text()
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in html


@needs_packages
@needs_chromium
def test_pages_of_other_files_in_chromium(pages, tmp_path):
    folder, files = pages
    metrics = {name: ["hamming", "decoded"] for name in files}
    metrics["slim"] = metrics["sparse"] = ["hamming"]
    expected = {
        name: {
            metric: {str(key): bits.most_similar(key, metric=metric) for key in keys}
            for metric in metrics[name]
        }
        for name, bits in files.items()
        for keys in [[str(each) for each in bits.ids(np.arange(QUERIES))]]
    }
    given = {"expected": expected, "bad": bad_files(tmp_path, folder / "texts.safetensors")}
    (tmp_path / "expected.json").write_text(json.dumps(given))
    node(
        "--test",
        "--test-reporter=spec",
        "page_kinds.test.mjs",
        PAGE_FOLDERS=str(folder),
        PAGE_EXPECTED=str(tmp_path / "expected.json"),
        CHROMIUM=CHROMIUM,
    )
