#include "words/words.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace embits {
namespace {

// Compares as bytes: std::string_view takes char for unsigned.
template <typename Number>
std::string_view word_at(const uint8_t* text, const Number* ends, uint64_t row) {
    const uint64_t start = row ? ends[row - 1] : 0;
    return {reinterpret_cast<const char*>(text) + start, ends[row] - start};
}

}  // namespace

void word_order(const uint8_t* text, const uint64_t* ends, size_t n, uint64_t* order) {
    std::iota(order, order + n, uint64_t{0});
    std::sort(order, order + n, [&](uint64_t a, uint64_t b) {
        const int sign = word_at(text, ends, a).compare(word_at(text, ends, b));
        return sign ? sign < 0 : a < b;
    });
}

std::vector<uint64_t> repeated_words(const uint8_t* text, const uint64_t* ends, size_t n,
                                     const uint64_t* order) {
    std::vector<uint64_t> repeated;
    for (size_t place = 1; place < n; ++place)
        if (word_at(text, ends, order[place - 1]) == word_at(text, ends, order[place]))
            repeated.push_back(order[place]);
    std::sort(repeated.begin(), repeated.end());
    return repeated;
}

template <typename Number>
void find_words(const uint8_t* text, size_t text_size, const Number* ends, size_t n,
                const Number* order, const uint8_t* wanted, const uint64_t* wanted_ends,
                size_t n_wanted, int64_t* rows) {
    auto lies_in_text = [&](uint64_t row) {
        return row < n && ends[row] <= text_size && (row == 0 || ends[row - 1] <= ends[row]);
    };
    auto is_less = [&](uint64_t row, std::string_view word) {
        return lies_in_text(row) && word_at(text, ends, row) < word;
    };
    for (size_t i = 0; i < n_wanted; ++i) {
        const std::string_view word = word_at(wanted, wanted_ends, i);
        const Number* found = std::lower_bound(order, order + n, word, is_less);
        const bool is_equal = found != order + n && lies_in_text(*found) &&
                              word_at(text, ends, *found) == word;
        rows[i] = is_equal ? static_cast<int64_t>(*found) : -1;
    }
}
template void find_words(const uint8_t*, size_t, const uint32_t*, size_t, const uint32_t*,
                         const uint8_t*, const uint64_t*, size_t, int64_t*);
template void find_words(const uint8_t*, size_t, const uint64_t*, size_t, const uint64_t*,
                         const uint8_t*, const uint64_t*, size_t, int64_t*);

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
