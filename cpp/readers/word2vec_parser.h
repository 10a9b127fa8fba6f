#pragma once
#include <cstddef>

#include "readers/rows.h"

namespace embits {

// Adds rows of word2vec's binary format to `rows`: a word, a space, `rows.dims` little-endian
// float32, and an optional newline. Returns how many bytes it used; the rest is the start of a row
// that continues in the next block.
size_t parse_word2vec(const char* bytes, size_t size, Rows& rows);

}  // namespace embits
