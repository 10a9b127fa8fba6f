#include "words/words.h"

#include <algorithm>
#include <numeric>
#include <random>
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

namespace {

void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

constexpr uint64_t kUpper = ~uint64_t{0} << 32;

// Ids often differ in their last bytes alone, so every step mixes all bits.
uint64_t hash_of(const uint8_t* word, size_t size, uint64_t seed) {
    uint64_t hash = seed ^ size;
    for (size_t at = 0; at < size; at += 8) {
        uint64_t part = 0;
        std::memcpy(&part, word + at, std::min<size_t>(8, size - at));
        hash = (hash ^ part) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    hash *= 0xd6e8feb86659fd93;
    return hash ^ hash >> 32;
}

}  // namespace

WordIndex::WordIndex(const uint8_t* text, size_t text_size, Numbers ends, size_t n)
    : text_(text), ends_(ends) {
    // Differs between processes: nobody can choose ids that collide.
    seed_ = reinterpret_cast<uintptr_t>(this) * 0x9e3779b97f4a7c15 ^ std::random_device{}();
    size_t size = 4;
    while (size < n + n / 2) size *= 2;
    slots_.resize(size);
    uint64_t start = 0;
    for (size_t row = 0; row < n; ++row) {
        const uint64_t end = ends[row];
        if (start > end || end > text_size) break;  // damaged
        const uint64_t hash = hash_of(text + start, end - start, seed_);
        uint64_t& slot = slots_[place_of(hash, text + start, end - start)];
        if (!slot) slot = (hash & kUpper) | (row + 1);  // of equal words, the first row
        start = end;
    }
}

// Where the word is, or the empty place where it belongs.
size_t WordIndex::place_of(uint64_t hash, const uint8_t* word, size_t size) const {
    const std::string_view wanted(reinterpret_cast<const char*>(word), size);
    size_t place = hash & (slots_.size() - 1);
    for (; slots_[place]; place = (place + 1) & (slots_.size() - 1)) {
        const bool is_alike = ((slots_[place] ^ hash) & kUpper) == 0;
        if (is_alike && word_at(text_, ends_, (slots_[place] & ~kUpper) - 1) == wanted) break;
    }
    return place;
}

// Each step reads memory that the step before has asked for, so that many words wait at once.
void WordIndex::find(const uint8_t* wanted, const uint64_t* wanted_ends, size_t n_wanted,
                     int64_t* rows) const {
    constexpr size_t kAtOnce = 32;
    uint64_t hashes[kAtOnce];
    const size_t mask = slots_.size() - 1;
    for (size_t first = 0; first < n_wanted; first += kAtOnce) {
        const size_t n = std::min(kAtOnce, n_wanted - first);
        const auto word = [&](size_t i) { return word_at(wanted, wanted_ends, first + i); };
        for (size_t i = 0; i < n; ++i) {
            const std::string_view text = word(i);
            hashes[i] = hash_of(reinterpret_cast<const uint8_t*>(text.data()), text.size(), seed_);
            prefetch(&slots_[hashes[i] & mask]);
        }
        for (size_t i = 0; i < n; ++i)
            if (const uint64_t slot = slots_[hashes[i] & mask])
                prefetch(ends_.data + ((slot & ~kUpper) - 1) * ends_.item);
        for (size_t i = 0; i < n; ++i)
            if (const uint64_t slot = slots_[hashes[i] & mask])
                prefetch(word_at(text_, ends_, (slot & ~kUpper) - 1).data());
        for (size_t i = 0; i < n; ++i) {
            const std::string_view text = word(i);
            const size_t place =
                place_of(hashes[i], reinterpret_cast<const uint8_t*>(text.data()), text.size());
            rows[first + i] = static_cast<int64_t>(slots_[place] & ~kUpper) - 1;
        }
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
