#pragma once
#include <cstddef>

#include "rows.h"

namespace embits {

// Adds the lines of `text` to `rows`: a word, then `rows.dims` numbers, with spaces or tabs
// between. `text` holds whole lines. Stops when `rows` is full, and at the first bad line unless
// bad ones are skipped; `rows.first_bad` then says which. Threads share the text by lines, and
// the outcome does not depend on how many there are.
void parse_text(const char* text, size_t size, unsigned threads, Rows& rows);

}  // namespace embits
