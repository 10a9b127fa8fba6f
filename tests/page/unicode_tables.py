"""Makes site/unicode_tables.js: what `tokenizers` knows of Unicode, where browsers may differ.

    python tests/page/unicode_tables.py           # writes the file
    python tests/page/unicode_tables.py --check   # says whether it is up to date

Every code point is given to `tokenizers`; what it does with it is the table. Node.js says what
browsers do.
"""

import json
import subprocess
import sys
from pathlib import Path

from tokenizers import normalizers, pre_tokenizers

TABLES = Path(__file__).parents[2] / "src" / "embits" / "page" / "site" / "unicode_tables.js"
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
FORMS = ("NFC", "NFD", "NFKC", "NFKD")

# For each character: its four forms where they differ, and the classes that it is in. A mark
# that is known is moved behind U+0334, the first of all marks, or before U+0345, the last.
ASK_NODE = r"""
const found = { forms: {}, letters: [], moved: [] };
for (let c = 0; c < 0x110000; c++) {
  if (c >= 0xd800 && c <= 0xdfff) continue;
  const text = String.fromCodePoint(c);
  const forms = ["NFC", "NFD", "NFKC", "NFKD"].map((form) => text.normalize(form));
  if (forms.some((form) => form !== text)) found.forms[c] = forms;
  if (/[\p{L}\p{N}]/u.test(text)) found.letters.push(c);
  if (/[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u.test(text)) found.letters.push(c);
  const pairs = [text + "\u0334", "\u0345" + text];
  const moves = pairs.some((pair) => pair.normalize("NFD") !== pair);
  if (moves && text.normalize("NFD") === text) found.moved.push(c);
}
console.log(JSON.stringify(found));
"""


def ranges(characters):
    """Characters as `300-36f 483`, in hexadecimal."""
    found = []
    for number in sorted({ord(c) for c in characters}):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in found)


def kept(normalizer, character):
    return normalizer.normalize_str(f"a{character}b") != "ab"


def tables():
    node = subprocess.run(["node", "-e", ASK_NODE], capture_output=True, text=True, check=True)
    browser = json.loads(node.stdout)
    clean = normalizers.BertNormalizer(True, False, False, False)
    accents = normalizers.BertNormalizer(False, False, True, False)
    bert = pre_tokenizers.BertPreTokenizer()
    byte_level = pre_tokenizers.ByteLevel(False)
    whitespace = pre_tokenizers.Whitespace()

    def joins(pre_tokenizer, character):
        return len(pre_tokenizer.pre_tokenize_str("a" + character)) == 1

    def is_letter(character):  # or a number, or of a word
        number = len(byte_level.pre_tokenize_str("1" + character)) == 1
        return number or joins(byte_level, character) or joins(whitespace, character)

    frozen = set()
    forms = [getattr(normalizers, form)() for form in FORMS]
    for number, expected in browser["forms"].items():
        character = chr(int(number))
        if [form.normalize_str(character) for form in forms] != expected:
            # Its parts must not be joined to it.
            frozen |= {character, *(part for part in expected[1] if part > "\u036f")}
    nfd = normalizers.NFD()
    for character in map(chr, browser["moved"]):
        pairs = [character + "\u0334", "\u0345" + character]
        if all(nfd.normalize_str(pair) == pair for pair in pairs):
            frozen.add(character)
    return {
        "NONSPACING": ranges(c for c in CHARACTERS if not kept(accents, c)),
        "MARKS": ranges(c for c in CHARACTERS if not kept(normalizers.StripAccents(), c)),
        "REMOVED": ranges(c for c in CHARACTERS if not kept(clean, c)),
        "PUNCTUATION": ranges(c for c in CHARACTERS if len(bert.pre_tokenize_str(f"a{c}b")) == 3),
        "NEW_LETTERS": ranges(c for c in map(chr, browser["letters"]) if not is_letter(c)),
        "NOT_NORMALIZED": ranges(frozen),
    }


def written():
    lines = [
        "// What `tokenizers` knows of Unicode. tests/page/unicode_tables.py writes this file.",
        *(f'export const {name} =\n  "{found}";' for name, found in tables().items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        TABLES.write_text(written())
    elif TABLES.read_text() != written():
        sys.exit(f"{TABLES} is not up to date: run python {sys.argv[0]}")
