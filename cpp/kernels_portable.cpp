// Plain C++ that any compiler turns into right code: the answer the other kernels must give.
//
// A 64-bit word is counted with a dozen shifts and adds (Hacker's Delight, 5-1): without a flag
// for newer processors, compilers make __builtin_popcountll a call to a table look-up.
#include <cstring>

#include "kernels.h"

namespace embits {
namespace {

uint32_t popcount(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<uint32_t>((x * 0x0101010101010101u) >> 56);
}

// The next eight bytes, or the ones that are left and zeros.
uint64_t word_at(const uint8_t* bytes, size_t left) {
    uint64_t word = 0;
    if (left >= 8)
        std::memcpy(&word, bytes, 8);
    else
        std::memcpy(&word, bytes, left);
    return word;
}

uint32_t hamming(const uint8_t* a, const uint8_t* b, size_t width) {
    uint32_t sum = 0;
    size_t i = 0;
    for (; i + 8 <= width; i += 8) sum += popcount(word_at(a + i, 8) ^ word_at(b + i, 8));
    if (i < width) sum += popcount(word_at(a + i, width - i) ^ word_at(b + i, width - i));
    return sum;
}

// Width known to the compiler (0: not known), so that the loop over words unrolls.
template <size_t Width>
size_t scan(const uint8_t* codes, size_t n, size_t width, const uint8_t* query, uint32_t limit,
            Hit* hits) {
    if (Width) width = Width;
    size_t found = 0;
    for (size_t row = 0; row < n; ++row) {
        const uint32_t distance = hamming(codes + row * width, query, width);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

size_t below(const uint8_t* codes, size_t n, size_t width, const uint8_t* query, uint32_t limit,
             Hit* hits) {
    switch (width) {
        case 8: return scan<8>(codes, n, width, query, limit, hits);
        case 16: return scan<16>(codes, n, width, query, limit, hits);
        case 32: return scan<32>(codes, n, width, query, limit, hits);
        case 64: return scan<64>(codes, n, width, query, limit, hits);
        default: return scan<0>(codes, n, width, query, limit, hits);
    }
}

size_t weighted_below(const uint8_t* codes, size_t n, size_t width, WeightedQuery query,
                      uint32_t limit, Hit* hits) {
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        uint32_t distance = 0;
        for (size_t i = 0; i < width; i += 8) {
            const size_t left = width - i;
            const uint64_t differing = word_at(codes + i, left) ^ word_at(query.code + i, left);
            uint32_t sum = 0;
            for (size_t p = 0; p < kPlanes; ++p)
                sum = 2 * sum + popcount(differing & word_at(query.planes + p * width + i, left));
            distance += sum;
        }
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

}  // namespace

const Kernels kPortable = {"portable", below, weighted_below};

}  // namespace embits
