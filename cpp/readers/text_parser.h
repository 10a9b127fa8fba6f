#pragma once
#include <cstddef>

#include "readers/rows.h"

namespace embits {

// Adds the lines of a block of text to `rows`: a word, then `rows.dims` numbers, with spaces or
// tabs between. A block may end anywhere; the start of a line that is not whole yet stays in
// `rows.tail` until the next block, or until `end_text`. Stops when `rows` is full, and at the
// first bad line unless bad ones are skipped; `rows.first_bad` then says which. Threads share the
// block by lines, and the outcome does not depend on how many there are.
void parse_text(const char* block, size_t size, unsigned threads, Rows& rows);

// The text has ended: what is left over is its last line.
void end_text(Rows& rows);

}  // namespace embits
