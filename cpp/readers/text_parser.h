#pragma once
#include <cstddef>

#include "readers/rows.h"

namespace embits {

// Adds the lines of a block of text to `rows`: a word, then `rows.dims` numbers, with spaces or
// tabs between. A block may end anywhere: the start of an incomplete line is kept in `rows.tail`
// until the next block or `end_text`. Stops when `rows` is full, and at the first bad line unless
// bad lines are skipped; `rows.first_bad` is that line. Threads share the block by lines; their
// number does not change the result.
void parse_text(const char* block, size_t size, unsigned threads, Rows& rows);

// Parses the last line of a text, if it does not end with a newline.
void end_text(Rows& rows);

}  // namespace embits
