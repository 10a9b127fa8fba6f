#pragma once
#include <cstddef>

#include "readers/rows.h"

namespace embits {

// Adds rows in word2vec's binary layout to `rows`: a word, a space, `rows.dims` little-endian
// float32, and maybe a newline. Returns how many bytes it used; the rest is the start of a row
// whose end is in the next block.
size_t parse_word2vec(const char* bytes, size_t size, Rows& rows);

}  // namespace embits
