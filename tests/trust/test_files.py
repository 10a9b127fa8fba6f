"""Damaged and hostile files give FormatError or the right answer: never anything else."""

import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest

import embits
from embits.coders import METHODS
from embits.file.store import DTYPES, MAX_HEADER
from tests.support import damage
from tests.support.answers import answers

MUTATIONS = 50_000  # of a test run, shared out among the files below
LONGEST_S = 1.0
MOST_BYTES = 2_000_000

MADE = [f"{method}-{kind}" for method in METHODS for kind in ("words", "rows")]
FILES = [*MADE, *damage.SEVERAL_BLOCKS, *damage.OF_0_3]


@pytest.fixture(scope="module", params=FILES)
def whole(request, tmp_path_factory):
    """The bytes of a small file, and what it answers."""
    path = tmp_path_factory.mktemp("whole") / "f"
    if request.param in MADE:
        method, _, kind = request.param.rpartition("-")
        damage.small(method, words=kind == "words", subwords=kind == "words").save(path)
    else:
        path.write_bytes(damage.golden(request.param))
    return path.read_bytes(), answers(embits.load(path, verify=True), path)


@pytest.fixture
def place(memory_path):
    """Where damaged files are put, one after the other, in place."""
    path = memory_path / "damaged.safetensors"
    path.touch()
    with path.open("r+b", buffering=0) as file:

        def put(raw):
            file.truncate(0)
            os.pwrite(file.fileno(), raw, 0)
            return path

        yield put


def is_one_line(error):
    return "\n" not in str(error) and len(str(error)) < 1000


def outcome(path, good, *, verify):
    """What became of it: "refused", "same" or "other"; any other exception fails the test."""
    start = time.perf_counter()
    try:
        bits = embits.load(path, verify=verify)
        found = "same" if answers(bits, path) == good else "other"
    except embits.FormatError as error:
        found = "refused" if is_one_line(error) else "refused with more than a line"
    if time.perf_counter() - start > LONGEST_S:  # again, in case the machine was busy
        start = time.process_time()
        outcome_again(path, verify=verify)
        assert time.process_time() - start < LONGEST_S
    return found


def outcome_again(path, *, verify):
    try:
        answers(embits.load(path, verify=verify), path)
    except embits.FormatError:
        return


@pytest.mark.slow
def test_every_flipped_bit_is_refused(memory_path):
    """In the header when the file is opened, in the tensors when it is verified."""
    path = memory_path / "f"
    damage.small("lsh", subwords=False).save(path)
    raw = path.read_bytes()
    data_start = 8 + int.from_bytes(raw[:8], "little")
    with path.open("r+b", buffering=0) as file:
        for at, byte in enumerate(raw):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), at)
                with pytest.raises(embits.FormatError):
                    embits.load(path, verify=at >= data_start)
            os.pwrite(file.fileno(), bytes([byte]), at)


def test_every_truncation_is_refused(whole, place):
    raw, _ = whole
    path = place(raw)
    for length in reversed(range(len(raw))):
        os.truncate(path, length)
        with pytest.raises(embits.FormatError):
            embits.load(path)


@pytest.mark.slow
def test_blind_damage_is_refused_or_harmless_when_verified(whole, place):
    raw, good = whole
    rng = random.Random(len(raw))
    found = Counter()
    for _ in range(MUTATIONS // 2 // len(FILES)):
        found[outcome(place(damage.blind(raw, rng)), good, verify=True)] += 1
    assert found["refused"] + found["same"] == found.total()
    assert found["refused"] > 0.9 * found.total()


@pytest.mark.slow
def test_hostile_files_are_refused_or_answer_and_raise_nothing_else(whole, place):
    """Their checksums fit: they may say wrong things, and do nothing."""
    raw, good = whole
    rng = random.Random(len(raw))
    found = Counter()
    for i in range(MUTATIONS // 2 // len(FILES)):
        found[outcome(place(damage.hostile(raw, rng)), good, verify=i % 2 == 0)] += 1
    # A test that only ever met refusals at open would not have asked any object anything.
    assert min(found["refused"], found["other"]) > 0.02 * found.total(), found
    assert found["refused with more than a line"] == 0


def many(piece, end, size=MAX_HEADER):
    return piece * ((size - len(end) - 2) // len(piece)) + end


@pytest.mark.parametrize(
    "header",
    [
        "[" + many("[],", "[]]"),
        "[" + many("{},", "{}]"),
        "[" + many('{"":{}},', "0]"),
        "{" + ",".join(f'"{i:x}":0' for i in range(7500)) + "}",
        "[" * 60_000,
        '{"a":' * 10_000,
        "[" + many("9e9,", "0]"),
        "[" + "9" * 60_000 + "]",
        '{"__metadata__": {"format": "embits", "header_sha256": "' + "\\ud800" * 64 + '"}}',
        '{"__metadata__": {"format": "embits"}, "__metadata__": {}}',
        '{"__metadata__": NaN}',
        '{"__metadata__": []}',
        "null",
        '"' + "\U0001f600" * 16_000 + '"',
    ],
    ids=lambda header: header[:20],
)
def test_little_is_allocated_before_a_refusal(header, place):
    text = header.encode()
    tracemalloc.start()
    try:
        with pytest.raises(embits.FormatError):
            embits.load(place(len(text).to_bytes(8, "little") + text))
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def test_refusals_of_hostile_files_take_little_memory(whole, place):
    raw, _ = whole
    rng = random.Random(3)
    tracemalloc.start()
    try:
        for _ in range(200):
            path = place(damage.hostile(raw, rng))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            outcome_again(path, verify=True)
            assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES
    finally:
        tracemalloc.stop()


_UNDER_A_LIMIT = """
import random, resource, sys
from pathlib import Path
import embits
from tests.support import damage
from tests.support.answers import answers
path = Path(sys.argv[1])
whole = path.read_bytes()
answers(embits.load(path), path)  # everything is imported, every pool is there
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 4_000_000, used + 4_000_000))
rng = random.Random(9)
for i in range(2000):
    path.write_bytes(damage.hostile(whole, rng))
    try:
        embits.load(path, verify=i % 2 == 0)
    except embits.FormatError:
        pass
print("no more was needed")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory by Linux's RLIMIT_AS")
@pytest.mark.skipif("EMBITS_SANITIZED" in os.environ, reason="a sanitizer takes memory itself")
def test_native_memory_stays_small_too(memory_path):
    path = memory_path / "f"
    damage.small("paper").save(path)
    done = subprocess.run(
        [sys.executable, "-c", _UNDER_A_LIMIT, path],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "no more was needed", done.stderr


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", damage.ODD, ids=lambda value: repr(value)[:12])
def test_a_parameter_of_the_wrong_type_is_refused_or_harmless(method, value, place, tmp_path):
    path = tmp_path / "whole"
    damage.small(method).save(path)
    header, data = damage.parts(path.read_bytes())
    for name in METHODS[method].param_names():
        params = json.loads(header["__metadata__"]["params"]) | {name: value}
        changed = json.loads(json.dumps(header))
        changed["__metadata__"]["params"] = json.dumps(params)
        outcome(place(damage.signed(changed, data)), "", verify=False)


def damaged_tensor(path, name, change):
    """The file again with a tensor's numbers changed, and all checksums made to fit."""
    header, data = damage.parts(path.read_bytes())
    entry = header[name]
    start, stop = entry["data_offsets"]
    array = np.frombuffer(data[start:stop], DTYPES[entry["dtype"]]).copy()
    change(array.reshape(entry["shape"]))
    path.write_bytes(damage.signed(header, data[:start] + array.tobytes() + data[stop:]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("method", METHODS)
def test_weights_that_are_not_finite_are_refused_where_they_are_used(method, bad, tmp_path):
    path = tmp_path / "f"
    whole = damage.small(method, subwords=False)
    for name, weights in whole.coder.state().items():  # those of their default are not stored
        if not weights.size or weights.dtype.kind != "f":
            continue
        whole.save(path)
        damaged_tensor(path, f"coder.{name}", lambda array: array.flat.__setitem__(0, bad))
        bits = embits.load(path)
        assert len(bits.most_similar("queen")) == 7  # needs no weights
        with pytest.raises(embits.FormatError, match="damaged: the coder's"):
            bits.coder.state()
        assert outcome(path, "", verify=False) == "refused"


def test_subwords_that_are_not_finite_are_refused_where_they_are_used(tmp_path):
    path = tmp_path / "f"
    damage.small("lsh").save(path)
    damaged_tensor(path, "subwords.buckets", lambda array: array.fill(np.nan))
    with pytest.raises(embits.FormatError, match="the subwords of 'absent'"):
        embits.load(path)["absent"]


@pytest.mark.parametrize("lengths", [(0, 2**32 - 1), (2**31, 2**31), (3, 2), (0, 0)])
def test_lengths_of_ngrams_that_cannot_be_are_refused(lengths, tmp_path):
    path = tmp_path / "f"
    damage.small("lsh").save(path)
    damaged_tensor(path, "subwords.lengths", lambda array: array.put((0, 1), lengths))
    with pytest.raises(embits.FormatError, match="n-grams of"):
        embits.load(path)


@pytest.mark.parametrize(
    "name", ["v1-paper-64", "v1-sparse-64", "v2-words", "v3-layer", "v3-cells"]
)
def test_a_plain_load_notices_a_flipped_bit_of_the_coder(name, place):
    """Its tensors are few bytes; those of the codes are read by a check of every byte alone."""
    raw = damage.golden(name)
    header, data = damage.parts(raw)
    start = len(raw) - len(data)
    for tensor, entry in header.items():
        if tensor == "__metadata__" or not entry["data_offsets"][1] - entry["data_offsets"][0]:
            continue
        flipped = bytearray(raw)
        flipped[start + entry["data_offsets"][1] - 1] ^= 1
        path = place(bytes(flipped))
        if tensor.startswith("coder."):
            with pytest.raises(embits.FormatError, match="do not match"):
                embits.load(path)
        elif tensor == "codes":
            assert len(embits.load(path)) == entry["shape"][0]
        with pytest.raises(embits.FormatError):
            embits.load(path, verify=True)
