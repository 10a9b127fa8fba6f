#include "words/words.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace embits {
namespace {

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

}  // namespace

void word_order(const uint8_t* text, const uint64_t* ends, size_t n, uint64_t* order) {
    std::iota(order, order + n, uint64_t{0});
    std::sort(order, order + n, [&](uint64_t a, uint64_t b) {
        uint64_t start_a = a ? ends[a - 1] : 0, start_b = b ? ends[b - 1] : 0;
        uint64_t size_a = ends[a] - start_a, size_b = ends[b] - start_b;
        int sign = std::memcmp(text + start_a, text + start_b, std::min(size_a, size_b));
        if (sign) return sign < 0;
        return size_a != size_b ? size_a < size_b : a < b;
    });
}

std::vector<uint64_t> repeated_words(const uint8_t* text, const uint64_t* ends, size_t n,
                                     const uint64_t* order) {
    std::vector<uint64_t> repeated;
    for (size_t place = 1; place < n; ++place) {
        uint64_t a = order[place - 1], b = order[place];
        uint64_t start_a = a ? ends[a - 1] : 0, start_b = b ? ends[b - 1] : 0;
        uint64_t size = ends[a] - start_a;
        if (size == ends[b] - start_b && std::memcmp(text + start_a, text + start_b, size) == 0)
            repeated.push_back(b);
    }
    std::sort(repeated.begin(), repeated.end());
    return repeated;
}

std::vector<size_t> near_spellings(const uint8_t* text, size_t text_size, const uint64_t* ends,
                                   size_t n, const uint8_t* word, size_t word_size,
                                   unsigned max_edits, size_t most) {
    const Pattern pattern(word, word_size);
    std::vector<std::vector<size_t>> by_edits(max_edits + 1);
    for (size_t row = 0; row < n; ++row) {
        uint64_t start = row ? ends[row - 1] : 0, end = ends[row];
        if (start > end || end > text_size) continue;
        size_t size = end - start;
        if (size + max_edits < word_size || word_size + max_edits < size) continue;
        unsigned edits = pattern.edits(text + start, size);
        if (edits <= max_edits && by_edits[edits].size() < most) by_edits[edits].push_back(row);
    }
    std::vector<size_t> nearest;
    for (const auto& rows : by_edits) nearest.insert(nearest.end(), rows.begin(), rows.end());
    nearest.resize(std::min(most, nearest.size()));
    return nearest;
}

}  // namespace embits
