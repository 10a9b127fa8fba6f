"""Makes site/constants.js: the values that Python and JavaScript share.

    python tests/page/constants.py           # writes the file

`test_javascript_constants.py` says whether it is up to date.
"""

import json
from pathlib import Path

from embits.coders.neural import net
from embits.collection import manifest
from embits.file import store
from embits.ids import packed, subwords
from embits.search import cells, filters
from embits.search.metrics import METRICS
from embits.search.plan import FITTED_K
from embits.text import answers, tokenizer

CONSTANTS = Path(__file__).parents[2] / "src" / "embits" / "page" / "site" / "constants.js"
VALUES = (
    ("METRICS", list(METRICS), ""),
    ("COSINES", [each.name for each in METRICS.values() if each.is_cosine], "scores are cosines"),
    ("WORD_METRICS", [each.name for each in METRICS.values() if each.needs == "codes"], ""),
    ("FITTED_K", FITTED_K, "neighbors that a coder chooses the rows of its second look by"),
    ("KS", list(cells.KS), "neighbors that the curves of cells are measured with"),
    ("FAR_K", cells._FAR_K, "the last of more rows is farther away than a curve of 10 says"),
    ("ROWS_PER_PASSED", cells._ROWS_PER_PASSED, "if fewer rows pass, only those are scanned"),
    ("COPY_COST", filters._COPY_COST, "of a row: rows that are read in order in that time"),
    ("ACCESS_BYTES", filters._ACCESS_BYTES, "the cost of reading a row elsewhere"),
    ("QUESTIONS", answers._QUESTIONS.split("|"), "words that do not make an answer"),
    ("SHARING", answers.SHARING, "of the least score, for answers that share a word"),
    ("MAX_SIZE", store.MAX_SIZE, "bytes or rows"),
    ("CHECK_BYTES", cells.CHECK_BYTES, "of the SHA-256 of a cell"),
    ("MAX_CELL_BITS", cells._MAX_BITS, "of a code in cells"),
    ("BLOCK", packed.BLOCK, "words that are coded together"),
    ("STEP", packed.STEP, "every STEP-th place has a link"),
    ("MAX_CODE_BITS", packed.MAX_CODE_BITS, "of a character of a word"),
    ("MAX_NGRAM", subwords.MAX_NGRAM, ""),
    ("LARGEST", net.LARGEST, "number of a layer in a file"),
    ("MANIFEST", manifest.MANIFEST, ""),
    ("CODER", manifest.CODER, "of a collection"),
    ("ENCODER", answers.ENCODER, "of the texts of a collection, if there is one"),
    ("MAX_MANIFEST", manifest.MAX_BYTES, "bytes"),
    ("MAX_ROWS", manifest.MAX_ROWS, "of a collection"),
    ("MAX_TOKENIZER", tokenizer.MAX_TOKENIZER, "bytes of JSON"),
    ("MAX_TOKENS", tokenizer._MOST_TOKENS, ""),
    ("MAX_ADDED", tokenizer._MAX_ADDED, "characters of all added tokens"),
    ("MAX_GROWTH", tokenizer._MAX_GROWTH, "characters that normalization makes of one"),
    ("MAX_SPLIT", tokenizer._MAX_SPLIT, "characters of a token that may be split anywhere"),
    ("MAX_WORK", tokenizer._MAX_WORK, "steps that take merges apart"),
    ("MERGE_WORK", tokenizer._MERGE_WORK, "steps that every merge takes"),
)


def written():
    lines = ["// The values that Python has too. tests/page/constants.py writes this file."]
    for name, value, comment in VALUES:
        meaning = f" // {comment}" if comment else ""
        lines.append(f"export const {name} = {json.dumps(value)};{meaning}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    CONSTANTS.write_text(written())
