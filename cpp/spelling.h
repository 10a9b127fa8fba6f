#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace embits {

// Rows of the words at most `max_edits` byte edits away from `word` (1 to 64 bytes), the fewest
// edits first and then in row order, `most` of them. Word i is text[ends[i-1], ends[i]); a word
// whose ends do not lie in the text is passed over.
std::vector<size_t> near_spellings(const uint8_t* text, size_t text_size, const uint64_t* ends,
                                   size_t n, const uint8_t* word, size_t word_size,
                                   unsigned max_edits, size_t most);

}  // namespace embits
