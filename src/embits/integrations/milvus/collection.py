"""A collection that `milvus.export` wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.bits import packed_width
from embits.integrations.descriptions import Description, check_ours
from embits.integrations.tables import Rows

_READ_ROWS = 4096
_PLAIN = re.compile(r"[^\x00-\x1f\"'\\%_]*")  # characters that mean themselves in an expression


class CodeCollection:
    """A collection of codes.

    Attributes:
        client: An open client.
        name: The collection's name.
        description: What the codes are.
        fields: The names of all fields that are there.
        place: The collection, for messages.
    """

    def __init__(self, client: Any, name: str) -> None:
        facts = client.describe_collection(name)
        self.client = client
        self.name = name
        self.place = f"the collection {name}"
        self.description = check_ours(Description.parse(facts["description"]), self.place)
        self.fields = [field["name"] for field in facts["fields"]]
        if facts.get("enable_dynamic_field"):
            self.fields.append("$meta")

    @property
    def columns(self) -> list[str]:
        """The fields other than the code."""
        return ["id", "word"] if self.description.words else ["id"]

    def find(self, words: list[str]) -> dict[str, int]:
        """The row numbers of those words that are there.

        How expressions escape characters differs between Milvus and Milvus Lite. Words with such
        characters are searched by what comes before them.
        """
        found = {}
        for word in words:
            plain = _PLAIN.match(word)[0]  # type: ignore[index]
            wanted = f'word == "{word}"' if plain == word else f'word like "{plain}%"'
            if not plain and word:
                wanted = "id >= 0"
            for each in self._query(wanted, ["word"]):
                if each["word"] == word:
                    found[word] = int(each["id"])
                    break
        return found

    def code(self, row: int) -> NDArray[np.uint8] | None:
        """The packed code of a row."""
        found = self.client.get(self.name, ids=[row], output_fields=["code"])
        return self._codes(found)[0] if len(found) else None

    def rows(self) -> Rows:
        """All rows, in the order of their numbers."""
        fields = [*self.columns, "code"]
        numbers, codes, words = [], [self._codes([])], []
        block: list[Any] = []
        for each in self._query("id >= -9223372036854775807", fields):
            numbers.append(int(each["id"]))
            block.append(each)
            words.append(each.get("word"))
            if len(block) == _READ_ROWS:
                codes.append(self._codes(block))
                block = []
        codes.append(self._codes(block))
        named = words if self.description.words else None
        return Rows.in_order(numbers, np.concatenate(codes), named)

    def _query(self, expression: str, fields: list[str]) -> Iterator[Any]:
        pages = self.client.query_iterator(
            self.name, filter=expression, output_fields=fields, batch_size=_READ_ROWS
        )
        try:
            while page := pages.next():
                yield from page
        finally:
            pages.close()

    def _codes(self, found: Any) -> NDArray[np.uint8]:
        blob = b"".join(each["code"][0] for each in found)
        return np.frombuffer(blob, np.uint8).reshape(-1, packed_width(self.description.bits))
