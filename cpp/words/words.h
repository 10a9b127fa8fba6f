#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace embits {

// Edits, a swap of neighbors being one, with Myers' bit-parallel algorithm (1999) in Hyyrö's form
// (2003): one machine word holds a column of the matrix, so a vocabulary of 400,000 words takes
// milliseconds.
class Pattern {
public:
    Pattern(const uint8_t* word, size_t size) : size_(size), last_(uint64_t{1} << (size - 1)) {
        for (size_t i = 0; i < size; ++i) places_[word[i]] |= uint64_t{1} << i;
    }

    unsigned edits(const uint8_t* other, size_t size) const {
        uint64_t up = ~uint64_t{0}, down = 0;  // vertical steps of +1 and -1
        uint64_t diagonal = 0, before = 0;     // of the column before
        unsigned distance = static_cast<unsigned>(size_);
        for (size_t i = 0; i < size; ++i) {
            uint64_t here = places_[other[i]], match = here | down;
            uint64_t swap = ((~diagonal & here) << 1) & before;
            diagonal = (((match & up) + up) ^ up) | match | swap;
            before = here;
            uint64_t right = down | ~(diagonal | up), left = up & diagonal;
            distance += (right & last_) != 0;
            distance -= (left & last_) != 0;
            right = (right << 1) | 1;
            left <<= 1;
            up = left | ~(diagonal | right);
            down = right & diagonal;
        }
        return distance;
    }

private:
    size_t size_;
    uint64_t last_;
    uint64_t places_[256] = {};  // for each byte, where it stands in the pattern
};

// Word i is text[ends[i-1], ends[i]), word 0 starts at 0.

// Fills `order` with the rows 0 to n-1 sorted by the bytes of their words, equal words in row
// order. The ends must lie in the text and must not run backwards.
void word_order(const uint8_t* text, const uint64_t* ends, size_t n, uint64_t* order);

// The `most` rows with the fewest edits, then by row.
class Nearest {
public:
    explicit Nearest(size_t most) : most_(most) {}
    void add(unsigned edits, size_t row);
    std::vector<size_t> rows() const;

private:
    size_t most_;
    std::vector<std::pair<unsigned, size_t>> found_;
};

// The rows, ascending, whose word an earlier row has too; `order` is that of `word_order`.
std::vector<uint64_t> repeated_words(const uint8_t* text, const uint64_t* ends, size_t n,
                                     const uint64_t* order);

// Whole numbers of 4 or 8 bytes, which need not be aligned.
struct Numbers {
    const uint8_t* data;
    unsigned item;

    uint64_t operator[](size_t i) const {
        if (item == 4) return at<uint32_t>(i);
        return at<uint64_t>(i);
    }

private:
    template <typename Number>
    Number at(size_t i) const {
        Number number;
        std::memcpy(&number, data + i * sizeof number, sizeof number);
        return number;
    }
};

// The first row of each wanted word, -1 for a word that is not there; `order` is that of
// `word_order`. Arrays of a damaged file give wrong rows, but are never read beyond their ends.
void find_words(const uint8_t* text, size_t text_size, Numbers ends, size_t n, Numbers order,
                const uint8_t* wanted, const uint64_t* wanted_ends, size_t n_wanted,
                int64_t* rows);

// A hash table of words, for many look-ups: about 16 bytes a word. It reads the text and the ends that
// it was made from, which must outlive it.
class WordIndex {
public:
    WordIndex(const uint8_t* text, size_t text_size, Numbers ends, size_t n);
    // As `find_words`.
    void find(const uint8_t* wanted, const uint64_t* wanted_ends, size_t n_wanted,
              int64_t* rows) const;

private:
    size_t place_of(uint64_t hash, const uint8_t* word, size_t size) const;

    const uint8_t* text_;
    Numbers ends_;
    uint64_t seed_;
    std::vector<uint64_t> slots_;  // the upper half of the hash, and row + 1; 0 is empty
};

// Rows of the words at most `max_edits` byte edits away from `word` (1 to 64 bytes), the fewest
// edits first and then in row order, `most` of them. An edit puts in, takes out or replaces a byte,
// or swaps two neighbors. A word whose ends do not lie in the text is
// passed over: the arrays may come from a damaged file.
std::vector<size_t> near_spellings(const uint8_t* text, size_t text_size, const uint64_t* ends,
                                   size_t n, const uint8_t* word, size_t word_size,
                                   unsigned max_edits, size_t most);

}  // namespace embits
