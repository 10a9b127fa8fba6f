#include <algorithm>
#include <string_view>

#include "words/packed_words.h"

namespace embits {
namespace {

// Hands the symbols of sorted words to a function, and each block's number before its words.
template <typename Block, typename Symbol>
void each_symbol(const uint8_t* text, const uint64_t* ends, const uint64_t* order, size_t n,
                 Block block, Symbol symbol) {
    auto number = [&](Alphabet alphabet, size_t value) {
        for (; value >= kContinued; value -= kContinued) symbol(alphabet, kContinued);
        symbol(alphabet, static_cast<unsigned>(value));
    };
    std::string_view before;
    for (size_t place = 0; place < n; ++place) {
        const uint64_t row = order[place], start = row ? ends[row - 1] : 0;
        const std::string_view word(reinterpret_cast<const char*>(text) + start, ends[row] - start);
        size_t shared = 0;
        if (place % PackedWords::kBlock == 0) {
            block(place / PackedWords::kBlock);
        } else {
            const size_t shorter = std::min(word.size(), before.size());
            while (shared < shorter && word[shared] == before[shared]) ++shared;
            number(kShared, shared);
        }
        number(kSize, word.size() - shared);
        for (char byte : word.substr(shared)) symbol(kByte, static_cast<uint8_t>(byte));
        before = word;
    }
}

}  // namespace


void pack_words(const uint8_t* text, const uint64_t* ends, const uint64_t* order, size_t n,
                uint64_t* counts, const uint32_t* codes, uint8_t* out, uint64_t* starts) {
    uint64_t at = 0;
    auto block = [&](size_t i) {
        if (codes) starts[i] = at;
    };
    auto symbol = [&](Alphabet alphabet, unsigned value) {
        const size_t entry = 256 * alphabet + value;
        if (!codes) {
            ++counts[entry];
            return;
        }
        for (unsigned bit = codes[entry] & 15; bit-- > 0; ++at)
            out[at / 8] |= static_cast<uint8_t>((codes[entry] >> (4 + bit) & 1) << (~at & 7));
    };
    each_symbol(text, ends, order, n, block, symbol);
}

}  // namespace embits
