// For x86-64 processors from 2013 on: the POPCNT instruction on 64-bit words.
//
// AVX2 itself has no population count; its best stand-in (two nibble look-ups with pshufb, then
// psadbw) takes about nine vector instructions for four words. POPCNT takes one for each word,
// three or four of them a cycle on AMD since Zen and one a cycle on Intel, and its result is
// where the comparison needs it, so the scan is bound by the front end: about three
// instructions a word.
#include <immintrin.h>

#include <cstring>

#include "kernels.h"

namespace embits {
namespace {

uint32_t popcount(uint64_t x) { return static_cast<uint32_t>(_mm_popcnt_u64(x)); }

uint64_t word_at(const uint8_t* bytes) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    return word;
}

// Codes of a whole number of words, known to the compiler.
template <size_t Words>
size_t scan_words(const uint8_t* codes, size_t n, const uint8_t* query, uint32_t limit,
                  Hit* hits) {
    uint64_t wanted[Words];
    std::memcpy(wanted, query, sizeof wanted);
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += sizeof wanted) {
        uint32_t distance = 0;
        for (size_t w = 0; w < Words; ++w) distance += popcount(word_at(codes + 8 * w) ^ wanted[w]);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

// Codes of eight bytes or more. The last word of a code is its last eight bytes: it overlaps the
// word before it, and the mask takes out what was counted there.
size_t scan_long(const uint8_t* codes, size_t n, size_t width, const uint8_t* query,
                 uint32_t limit, Hit* hits) {
    const size_t whole = (width - 1) / 8 * 8;
    const uint64_t mask = ~uint64_t{0} << (8 * (whole + 8 - width));
    const uint64_t wanted = word_at(query + width - 8);
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        uint32_t distance = popcount((word_at(codes + width - 8) ^ wanted) & mask);
        for (size_t i = 0; i < whole; i += 8)
            distance += popcount(word_at(codes + i) ^ word_at(query + i));
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

// Codes of less than eight bytes: eight are read and the mask drops the next code's, so the last
// rows, where eight bytes would pass the end, are copied out first.
size_t scan_short(const uint8_t* codes, size_t n, size_t width, const uint8_t* query,
                  uint32_t limit, Hit* hits) {
    const uint64_t mask = (uint64_t{1} << (8 * width)) - 1;
    uint64_t wanted = 0;
    std::memcpy(&wanted, query, width);
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        uint64_t word = 0;
        if ((n - row) * width >= 8)
            word = word_at(codes) & mask;
        else
            std::memcpy(&word, codes, width);
        const uint32_t distance = popcount(word ^ wanted);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

size_t below(const uint8_t* codes, size_t n, size_t width, const uint8_t* query, uint32_t limit,
             Hit* hits) {
    switch (width) {
        case 8: return scan_words<1>(codes, n, query, limit, hits);
        case 16: return scan_words<2>(codes, n, query, limit, hits);
        case 32: return scan_words<4>(codes, n, query, limit, hits);
        case 64: return scan_words<8>(codes, n, query, limit, hits);
    }
    return width > 8 ? scan_long(codes, n, width, query, limit, hits)
                     : scan_short(codes, n, width, query, limit, hits);
}

}  // namespace

const Kernels kAvx2 = {"avx2", below};

}  // namespace embits
