#include "words/words.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace embits {
namespace {

// Compares as bytes: std::string_view takes char for unsigned.
template <typename Ends>
std::string_view word_at(const uint8_t* text, const Ends& ends, uint64_t row) {
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

void find_words(const uint8_t* text, size_t text_size, Numbers ends, size_t n, Numbers order,
                const uint8_t* wanted, const uint64_t* wanted_ends, size_t n_wanted,
                int64_t* rows) {
    auto lies_in_text = [&](uint64_t row) {
        return row < n && ends[row] <= text_size && (row == 0 || ends[row - 1] <= ends[row]);
    };
    for (size_t i = 0; i < n_wanted; ++i) {
        const std::string_view word = word_at(wanted, wanted_ends, i);
        size_t low = 0, high = n;  // the first place whose word is not below
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            const uint64_t row = order[middle];
            const bool is_less = lies_in_text(row) && word_at(text, ends, row) < word;
            (is_less ? low : high) = middle + is_less;
        }
        const uint64_t row = low < n ? order[low] : n;
        const bool is_equal = lies_in_text(row) && word_at(text, ends, row) == word;
        rows[i] = is_equal ? static_cast<int64_t>(row) : -1;
    }
}

void Nearest::add(unsigned edits, size_t row) {
    const std::pair<unsigned, size_t> added(edits, row);
    size_t place = found_.size();
    while (place > 0 && added < found_[place - 1]) --place;
    if (place == most_) return;
    if (found_.size() == most_) found_.pop_back();
    found_.insert(found_.begin() + place, added);
}

std::vector<size_t> Nearest::rows() const {
    std::vector<size_t> rows;
    for (const auto& [edits, row] : found_) rows.push_back(row);
    return rows;
}

std::vector<size_t> near_spellings(const uint8_t* text, size_t text_size, const uint64_t* ends,
                                   size_t n, const uint8_t* word, size_t word_size,
                                   unsigned max_edits, size_t most) {
    const Pattern pattern(word, word_size);
    Nearest nearest(most);
    for (size_t row = 0; row < n; ++row) {
        uint64_t start = row ? ends[row - 1] : 0, end = ends[row];
        if (start > end || end > text_size) continue;
        size_t size = end - start;
        if (size + max_edits < word_size || word_size + max_edits < size) continue;
        unsigned edits = pattern.edits(text + start, size);
        if (edits <= max_edits) nearest.add(edits, row);
    }
    return nearest.rows();
}

}  // namespace embits
