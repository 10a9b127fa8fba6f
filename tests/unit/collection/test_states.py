"""A collection is a dictionary of codes that is searched: whatever is done to it."""

import tempfile
from pathlib import Path
from typing import ClassVar

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
from embits.search.rescoring import rescore_floats
from tests.support.vectors import clustered

ROWS = clustered(200).astype(np.float16).astype(np.float32)  # which are kept as they are
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | st.text(max_size=5),
        "year": st.none() | st.integers(1990, 2030),
        "tags": st.none() | st.lists(st.sampled_from("abc"), max_size=3),
    },
)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)
CODES = CODER.encode(ROWS)


class CollectionMachine(RuleBasedStateMachine):
    """Adds, updates, removes, compacts and reopens, beside a plain dictionary id -> row of ROWS."""

    there = Bundle("there")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "c")
        self.collection = embits.open_collection(self.path, CODER, keep="float16")
        self.reader = embits.open_collection(self.path)
        self.model = {}
        self.values = {}  # of columns: id -> name -> value
        self.columns = set()  # that were ever given
        self.seen = {}  # what the reader shows
        self.next = 0

    def put(self, change, ids, rows, values):
        """Columns that one of the rows has are given for all of them."""
        names = {name for each in values or () for name in each}
        given = {name: [each.get(name) for each in values] for name in names} if values else None
        getattr(self.collection, change)(ROWS[rows], ids, columns=given)
        self.columns |= names
        for place, (word, row) in enumerate(zip(ids, rows, strict=True)):
            self.model.pop(word, None)  # an updated row moves to the end
            self.model[word] = row
            if values is not None:
                self.values[word] = values[place]

    @rule(
        target=there,
        rows=st.lists(st.tuples(st.integers(0, 199), VALUES), min_size=1, max_size=9),
        has_columns=st.booleans(),
    )
    def add(self, rows, has_columns):
        ids = [f"id-{self.next + place}" for place in range(len(rows))]
        self.next += len(rows)
        values = [each for _, each in rows] if has_columns else None
        self.put("add", ids, [row for row, _ in rows], values)
        return multiple(*ids)

    @rule(
        ids=st.lists(there, min_size=1, max_size=4, unique=True),
        row=st.integers(0, 150),
        values=st.none() | st.lists(VALUES, min_size=4, max_size=4),
        change=st.sampled_from(["update", "upsert"]),
    )
    def update(self, ids, row, values, change):
        """Without columns, rows keep theirs."""
        ids = [word for word in ids if word in self.model]
        values = values and values[: len(ids)]
        self.put(change, ids, list(range(row, row + len(ids))), values)

    @rule(ids=st.lists(consumes(there), min_size=1, max_size=5, unique=True))
    def remove(self, ids):
        ids = [word for word in ids if word in self.model]  # others were removed by a filter
        self.collection.remove(ids)
        for word in ids:
            self.forget(word)

    def forget(self, word):
        del self.model[word]
        self.values.pop(word, None)

    def that_pass(self, name, passes):
        return [word for word in self.model if passes(self.values.get(word, {}).get(name))]

    @rule(
        low=st.none() | st.integers(1990, 2030),
        high=st.none() | st.integers(1990, 2030),
        k=st.integers(1, 12),
        query=st.integers(0, 199),
    )
    def search_by_columns(self, low, high, k, query):
        if "year" not in self.columns:
            return
        least, most = -1 if low is None else low, 9999 if high is None else high
        expected = self.that_pass("year", lambda v: v is not None and least <= v <= most)
        for _ in range(2):  # the second time it is known
            assert (
                self.collection.ids(self.collection.select({"year": (low, high)}).rows).tolist()
                == expected
            )
        found = self.collection.search(ROWS[query], k, where={"year": (low, high)})
        by_ids = self.collection.search(ROWS[query], k, where=expected)
        assert found.ids.tolist() == by_ids.ids.tolist()
        years = [self.values[word]["year"] for word in found.ids]
        assert found.column("year").tolist() == years

    @rule(value=st.none() | st.sampled_from(["", "a", "ab"]), tag=st.sampled_from("abcd"))
    def select_by_columns(self, value, tag):
        select = lambda where: self.collection.ids(self.collection.select(where).rows).tolist()  # noqa: E731
        if "text" in self.columns:
            assert select({"text": value}) == self.that_pass("text", lambda v: v == value)
            some = self.that_pass("text", lambda v: v in (None, "a"))
            assert select({"text": [None, "a"]}) == some
        if "tags" in self.columns:
            assert select({"tags": tag}) == self.that_pass("tags", lambda v: tag in (v or ()))

    @rule(year=st.integers(1990, 2030))
    def remove_by_columns(self, year):
        if "year" not in self.columns:
            return
        gone = self.that_pass("year", lambda v: v == year)
        assert self.collection.remove(where={"year": year}) == len(gone)
        for word in gone:
            self.forget(word)

    @rule(word=there)
    def add_again(self, word):
        if word not in self.model:
            return
        with pytest.raises(embits.InputError, match=f"{word!r} already exists"):
            self.collection.add(ROWS[:2], [f"new-{self.next}", word])

    @rule(cells=st.none() | st.integers(1, 4))
    def compact(self, cells):
        self.collection.compact(cells=cells)
        assert len(self.collection.manifest.pieces) <= 1

    @rule(are_given=st.booleans())
    def refit(self, are_given):
        """The new coder has the planes of the old one, so codes stay; its decoder is another."""
        if not self.model:
            return
        before = self.collection.manifest.coder
        if are_given:
            ids = sorted(self.model)
            self.collection.refit(ROWS[[self.model[word] for word in ids]], ids)
        else:
            self.collection.refit()
        assert before in self.collection.manifest.past
        assert self.collection.manifest.fitted_rows == len(self.model)

    @rule(query=st.integers(0, 199), k=st.integers(1, 12))
    def rescore(self, query, k):
        if not self.model:
            return
        floats = ROWS[list(self.model.values())]
        found = self.collection.search(ROWS[query], k, rescore=300)
        expected = rescore_floats(floats, ROWS[query], np.arange(len(floats)), min(k, len(floats)))
        assert found.rows.tolist() == expected.rows.tolist()
        assert found.cosines.tolist() == expected.cosines.tolist()

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
        found = self.collection.search(ROWS[query], k, metric="hamming")
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
        if word not in self.model:
            return
        assert word in self.collection
        assert self.collection[word].tolist() == CODES[self.model[word]].tolist()

    @invariant()
    def it_shows_what_was_done(self):
        assert len(self.collection) == len(self.model)
        assert list(self.collection.words) == list(self.model)
        assert np.array_equal(np.asarray(self.collection.codes), CODES[list(self.model.values())])
        assert set(self.collection.manifest.columns) == self.columns
        for name in self.columns:
            expected = [self.values.get(word, {}).get(name) for word in self.model]
            assert (
                self.collection.get(rows=range(len(self.model)), columns=[name])[name] == expected
            )
            assert self.collection.columns[name].to_pylist() == expected

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
    """The same where pieces are not merged as rows are added, and a log has few rows."""

    limits: ClassVar = {"MAX_MERGED_ROWS": 0, "MAX_ROWS": 20}

    def __init__(self):
        super().__init__()
        self.before = {name: getattr(changes, name) for name in self.limits}
        for name, limit in self.limits.items():
            setattr(changes, name, limit)

    def teardown(self):
        for name, limit in self.before.items():
            setattr(changes, name, limit)
        super().teardown()


class NoLog(LargePieces):
    """The same where all rows are added as pieces."""

    limits: ClassVar = {"MAX_ADDED": 0}


RUNS = settings(max_examples=15, stateful_step_count=25, deadline=None)
CollectionMachine.TestCase.settings = RUNS
LargePieces.TestCase.settings = RUNS
NoLog.TestCase.settings = RUNS
TestCollection = CollectionMachine.TestCase
TestLargePieces = LargePieces.TestCase
TestNoLog = NoLog.TestCase
