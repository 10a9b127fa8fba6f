#include "readers/word2vec_parser.h"

#include <cmath>

namespace embits {
namespace {

constexpr size_t kMaxWord = 1 << 16;

bool all_finite(const std::vector<float>& row) {
    for (float value : row)
        if (!std::isfinite(value)) return false;
    return true;
}

}  // namespace

size_t parse_word2vec(const char* bytes, size_t size, Rows& rows) {
    const char *p = bytes, *end = bytes + size;
    std::vector<float> row(rows.dims);
    const size_t row_bytes = rows.dims * sizeof(float);
    rows.matrix.reserve(rows.matrix.size() + size / (row_bytes + 1) * rows.dims);
    while (!rows.stopped() && p < end) {
        const char* word = p;
        while (word < end && *word == '\n') ++word;
        const int64_t place = rows.next_place + (word - bytes);
        const size_t left = static_cast<size_t>(end - word);
        const void* found = std::memchr(word, ' ', left < kMaxWord ? left : kMaxWord);
        if (found == nullptr && left >= kMaxWord)
            rows.refuse({place, "no space in 65536 bytes", "a word and a space"});
        if (found == nullptr) break;
        const char* space = static_cast<const char*>(found);
        if (static_cast<size_t>(end - space - 1) < row_bytes) break;
        if (std::memchr(word, '\n', static_cast<size_t>(space - word)) != nullptr) {
            rows.refuse({place, "a newline within a word", "a word and a space"});
            break;
        }
        std::memcpy(row.data(), space + 1, row_bytes);
        p = space + 1 + row_bytes;
        if (!all_finite(row)) {
            if (rows.n_bad++ == 0) rows.first_bad = {place, "nan or inf", "finite float32 values"};
            continue;
        }
        rows.matrix.append(row.data(), row.size());
        rows.words.append(word, space).push_back('\n');
        rows.places.push_back(place);
    }
    rows.next_place += p - bytes;
    return static_cast<size_t>(p - bytes);
}

}  // namespace embits
