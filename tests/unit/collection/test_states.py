"""A collection is a dictionary of codes that is searched: whatever is done to it."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

import embits
from embits.collection import changes
from tests.support.vectors import clustered

ROWS = clustered(200)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)
CODES = CODER.encode(ROWS)


class CollectionMachine(RuleBasedStateMachine):
    """Adds, updates, removes, compacts and reopens, beside a plain dictionary id -> row of ROWS."""

    there = Bundle("there")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "c")
        self.collection = embits.open_collection(self.path, CODER)
        self.reader = embits.open_collection(self.path)
        self.model = {}
        self.seen = {}  # what the reader shows
        self.next = 0

    @rule(target=there, rows=st.lists(st.integers(0, 199), min_size=1, max_size=9))
    def add(self, rows):
        ids = [f"id-{self.next + place}" for place in range(len(rows))]
        self.next += len(rows)
        self.collection.add(ROWS[rows], ids)
        self.model |= dict(zip(ids, rows, strict=True))
        return multiple(*ids)

    @rule(ids=st.lists(there, min_size=1, max_size=4, unique=True), row=st.integers(0, 150))
    def update(self, ids, row):
        rows = list(range(row, row + len(ids)))
        self.collection.update(ROWS[rows], ids)
        for word, place in zip(ids, rows, strict=True):
            del self.model[word]  # an updated row moves to the end
            self.model[word] = place

    @rule(ids=st.lists(consumes(there), min_size=1, max_size=5, unique=True))
    def remove(self, ids):
        self.collection.remove(ids)
        for word in ids:
            del self.model[word]

    @rule(word=there)
    def add_again(self, word):
        with pytest.raises(embits.InputError, match=f"{word!r} already exists"):
            self.collection.add(ROWS[:2], [f"new-{self.next}", word])

    @rule()
    def compact(self):
        self.collection.compact()
        assert len(self.collection.manifest.pieces) <= 1

    @rule()
    def reopen(self):
        self.collection = embits.load(self.path, verify=True)

    @rule()
    def refresh(self):
        changed = self.reader.refresh()
        assert changed or self.seen == self.model
        self.seen = dict(self.model)

    @rule(query=st.integers(0, 199), k=st.integers(1, 12))
    def search(self, query, k):
        codes = CODES[list(self.model.values())] if self.model else CODES[:0]
        found = self.collection.search(ROWS[query], k)
        expected = embits.search.top_k(codes, CODES[query], k)
        assert found.distances.tolist() == expected.distances.tolist()
        assert found.rows.tolist() == expected.rows.tolist()
        names = list(self.model)
        assert self.collection.ids(found.rows).tolist() == [names[row] for row in expected.rows]

    @rule(query=st.integers(0, 199), k=st.integers(1, 12))
    def search_by_floats(self, query, k):
        if self.model:
            plain = embits.BinaryVectors(list(self.model), CODES[list(self.model.values())], CODER)
            found = self.collection.search(ROWS[query], k, metric="asymmetric")
            expected = plain.search(ROWS[query], k, metric="asymmetric")
            assert found.rows.tolist() == expected.rows.tolist()
            within = self.collection.within(ROWS[query], distance=20)
            assert within.rows.tolist() == plain.within(ROWS[query], distance=20).rows.tolist()

    @rule(word=there)
    def look_up(self, word):
        assert word in self.collection
        assert self.collection[word].tolist() == CODES[self.model[word]].tolist()

    @invariant()
    def it_shows_what_was_done(self):
        assert len(self.collection) == len(self.model)
        assert list(self.collection.words) == list(self.model)
        assert np.array_equal(np.asarray(self.collection.codes), CODES[list(self.model.values())])

    @invariant()
    def the_reader_shows_what_it_opened(self):
        assert list(self.reader.words) == list(self.seen)
        codes = np.asarray(self.reader.codes)
        assert np.array_equal(codes, CODES[list(self.seen.values())])

    @invariant()
    def no_file_is_left_over(self):
        there = {path.name for path in self.path.iterdir()}
        assert there == self.collection.manifest.files() | {"_lock"}

    def teardown(self):
        self.folder.cleanup()


class LargePieces(CollectionMachine):
    """The same where pieces are not merged as rows are added."""

    def __init__(self):
        super().__init__()
        self.merged_rows = changes.MAX_MERGED_ROWS
        changes.MAX_MERGED_ROWS = 0

    def teardown(self):
        changes.MAX_MERGED_ROWS = self.merged_rows
        super().teardown()


RUNS = settings(max_examples=15, stateful_step_count=25, deadline=None)
CollectionMachine.TestCase.settings = RUNS
LargePieces.TestCase.settings = RUNS
TestCollection = CollectionMachine.TestCase
TestLargePieces = LargePieces.TestCase
