// Helpers that the kernel files share.
//
// Everything here is in an anonymous namespace: each kernel file gets its own copy, compiled for
// its own instructions. One shared copy could be the one for the widest instructions, and older
// processors would crash in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "search/planes.h"

#if defined(_MSC_VER)
#include <intrin.h>
#define EMBITS_INLINE __forceinline
#else
#define EMBITS_INLINE inline __attribute__((always_inline))
#endif

namespace embits {
namespace {

// The next eight bytes; when fewer are left, those and zeros.
inline uint64_t word_at(const uint8_t* bytes, size_t left = 8) {
    uint64_t word = 0;
    if (left >= 8) {
        std::memcpy(&word, bytes, 8);
    } else {  // a loop: memcpy of an unknown length is a function call, which is far slower
        for (size_t i = 0; i < left; ++i) word |= uint64_t{bytes[i]} << (8 * i);
    }
    return word;
}

// The place of the lowest bit of x, which is not zero.
inline size_t lowest_bit(uint64_t x) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, x);
    return at;
#else
    return static_cast<size_t>(__builtin_ctzll(x));
#endif
}

// The Hamming distance of two codes; `count` is the population count of a 64-bit word.
template <class Count>
uint32_t hamming_words(const uint8_t* a, const uint8_t* b, size_t width, Count count) {
    uint32_t distance = 0;
    for (size_t i = 0; i < width; i += 8)
        distance += count(word_at(a + i, width - i) ^ word_at(b + i, width - i));
    return distance;
}

// The weight of the differing bits in bytes [begin, width) of a code.
template <size_t Bits, class Count>
uint32_t weigh_words(const uint8_t* code, WeightedQuery query, size_t begin, size_t width,
                     Count count) {
    uint32_t distance = 0;
    for (size_t i = begin; i < width; i += 8) {
        const size_t left = width - i;
        const uint64_t differing = word_at(code + i, left) ^ word_at(query.code + i, left);
        uint32_t sum = 0;
        for (size_t p = 0; p < Bits; ++p)
            sum = 2 * sum + count(differing & word_at(query.weights + p * width + i, left));
        distance += sum;
    }
    return distance;
}

}  // namespace
}  // namespace embits
