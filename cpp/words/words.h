#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace embits {

// Word i is text[ends[i-1], ends[i]), word 0 starts at 0.

// Fills `order` with the rows 0 to n-1 sorted by the bytes of their words, equal words in row
// order. The ends must lie in the text and must not run backwards.
void word_order(const uint8_t* text, const uint64_t* ends, size_t n, uint64_t* order);

// The rows, ascending, whose word an earlier row has too; `order` is that of `word_order`.
std::vector<uint64_t> repeated_words(const uint8_t* text, const uint64_t* ends, size_t n,
                                     const uint64_t* order);

// The first row of each wanted word, -1 for a word that is not there; `order` is that of
// `word_order`. Arrays of a damaged file give wrong rows, but are never read beyond their ends.
// Number is uint32_t or uint64_t.
template <typename Number>
void find_words(const uint8_t* text, size_t text_size, const Number* ends, size_t n,
                const Number* order, const uint8_t* wanted, const uint64_t* wanted_ends,
                size_t n_wanted, int64_t* rows);

// Rows of the words at most `max_edits` byte edits away from `word` (1 to 64 bytes), the fewest
// edits first and then in row order, `most` of them. An edit puts in, takes out or replaces a byte,
// or swaps two neighbors. A word whose ends do not lie in the text is
// passed over: the arrays may come from a damaged file.
std::vector<size_t> near_spellings(const uint8_t* text, size_t text_size, const uint64_t* ends,
                                   size_t n, const uint8_t* word, size_t word_size,
                                   unsigned max_edits, size_t most);

}  // namespace embits
