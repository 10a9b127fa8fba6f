"""Every example in the README and the docs runs."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.coders.near_lossless import training
from tests.support.retrieval import write_retrieval

ROOT = Path(__file__).parents[2]
# docs/results holds the output of `embits compare`, which has no examples.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "results" not in page.parts),
]
WORDS = [
    "queen",
    "king",
    "princess",
    "car",
    "automobile",
    "paris",
    "france",
    "japan",
    "tokyo",
    "coffee",
    "man",
    "woman",
]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the examples use."""
    rng = np.random.default_rng(0)
    words = [*WORDS, *(f"word{i}" for i in range(300))]
    vectors = embits.WordVectors(words, rng.normal(0, 0.4, (len(words), 100)).astype("f4"))
    embits.write_vectors(tmp_path / "glove.6B.100d.txt", vectors)
    bits = embits.binarize(vectors, n_bits=64, method="lsh")
    bits.save(tmp_path / "glove.safetensors")
    sample = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
    sample.save(tmp_path / "words.safetensors")
    (tmp_path / "embits-demo").mkdir()
    bits.save(tmp_path / "embits-demo/glove.256.safetensors")
    for name in ("sentences.npy", "texts.npy"):
        np.save(tmp_path / name, rng.normal(size=(300, 384)).astype("f4"))
    (tmp_path / "data/similarity").mkdir(parents=True)
    (tmp_path / "data/similarity/MEN.txt").write_text("queen king 9\ncar paris 1\ncar man 2\n")
    (tmp_path / "data/analogy").mkdir()
    (tmp_path / "data/analogy/questions-words.txt").write_text(": x\nfrance paris japan tokyo\n")
    write_retrieval(tmp_path / "data/retrieval/scifact", dims=100)
    pa = pytest.importorskip("pyarrow")
    (tmp_path / "embeddings").mkdir()
    table = pa.table({"id": range(len(words)), "vector": list(vectors.matrix)})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "embeddings/0.parquet")
    monkeypatch.chdir(tmp_path)
    # These tests check that the examples run; test_near_lossless.py checks a full training.
    monkeypatch.setattr(training, "budget", lambda *_: training.Budget(100, 256))
    return tmp_path


@pytest.fixture
def database(page, request, monkeypatch):
    """Set $DATABASE_URL to a real server for pages that use it; skip without the page's engine."""
    engines = {"duckdb": "duckdb", "lancedb": "lancedb", "milvus": "milvus_lite"}
    engines |= {"langchain": "langchain_core", "llama-index": "llama_index.core"}
    engine = engines.get(page.stem)
    if engine is not None:
        pytest.importorskip(engine, reason=f"embits[{page.stem}] is not installed")
    if "DATABASE_URL" in page.read_text():
        address = request.getfixturevalue("postgres")
        monkeypatch.setenv("DATABASE_URL", address)
        with pytest.importorskip("psycopg").connect(address) as connection:
            connection.execute("drop table if exists words")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_examples_run(page, folder, database):
    if page.stem == "gpu":
        torch = pytest.importorskip("torch", reason="the examples of gpu.md need a GPU")
        if not torch.cuda.is_available():
            pytest.skip("the examples of gpu.md need a GPU")
    rng = np.random.default_rng(1)
    names = {"embits": embits, "np": np, "x": rng.normal(size=100)}
    names |= {"X": rng.normal(0, 0.4, (400, 100)), "queries": rng.normal(0, 0.4, (5, 100))}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_then_queries_run(page, folder, database):
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            command = [os.path.expandvars(part) for part in shlex.split(line, comments=True)]
            if command[:1] == ["printf"]:
                subprocess.run(line, shell=True, check=True)
            forever = "--open" in command  # serves until it is stopped
            if command[:1] == ["embits"] and "demo" not in command and not forever:
                done = subprocess.run(
                    [sys.executable, "-m", *command], capture_output=True, text=True, timeout=300
                )
                assert done.returncode == 0, f"{line}\n{done.stderr}"
    for block in blocks(page, "sql"):
        for statement in filter(str.strip, block.split(";")):
            assert answer(page, statement), statement


def answer(page, statement):
    """Rows from Postgres, or from the database that the page's commands wrote."""
    if "DATABASE_URL" in page.read_text():
        import psycopg

        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            return connection.execute(statement).fetchall()
    if databases := list(Path().glob("*.duckdb")):
        import duckdb

        with duckdb.connect(str(databases[0]), read_only=True) as connection:
            return connection.execute(statement).fetchall()
    from embits.integrations import sqlite

    (path,) = Path().glob("*.db")
    return sqlite.connect(path).execute(statement).fetchall()
