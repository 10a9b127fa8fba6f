// AVX2 vectors of codes: counts of bits, weights of bits, and planes.
#pragma once
#include <immintrin.h>

#include "search/words.h"

namespace embits {
namespace {

uint32_t popcount(uint64_t x) { return static_cast<uint32_t>(_mm_popcnt_u64(x)); }

// How many bits are set in each byte.
__m256i byte_counts(__m256i x) {
    const __m256i bits = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                          0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(bits, _mm256_and_si256(x, nibble));
    const __m256i high =
        _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
    return _mm256_add_epi8(low, high);
}

__m256i load(const uint8_t* bytes) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}

// ---- Weighted bits

// The weights of differing bits, summed over 64-bit words. A byte weighs at most 8 * 15 with four
// bits, which still fits a byte.
template <size_t Bits>
__m256i weigh(__m256i differing, const uint8_t* weights, size_t width) {
    constexpr size_t kHigh = Bits > 4 ? 4 : Bits;
    __m256i sum = _mm256_setzero_si256();
    for (size_t p = 0; p < kHigh; ++p, weights += width)
        sum = _mm256_add_epi8(_mm256_add_epi8(sum, sum),
                              byte_counts(_mm256_and_si256(differing, load(weights))));
    sum = _mm256_sad_epu8(sum, _mm256_setzero_si256());
    if constexpr (Bits > kHigh)
        return _mm256_add_epi64(_mm256_slli_epi64(sum, Bits - kHigh),
                                weigh<Bits - kHigh>(differing, weights, width));
    return sum;
}

template <size_t Bits>
uint32_t weighted_distance(const uint8_t* code, size_t width, WeightedQuery query) {
    const size_t whole = width / 32 * 32;
    __m256i sums = _mm256_setzero_si256();
    for (size_t i = 0; i < whole; i += 32) {
        const __m256i differing = _mm256_xor_si256(load(code + i), load(query.code + i));
        sums = _mm256_add_epi64(sums, weigh<Bits>(differing, query.weights + i, width));
    }
    const __m128i halves =
        _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(halves) + _mm_extract_epi32(halves, 2)) +
           weigh_words<Bits>(code, query, whole, width, popcount);
}

// ---- Planes of 256 rows

struct Vector {
    using Type = __m256i;
    static constexpr size_t kBytes = 32, kColumns = 16, kLanes = 2;
    static constexpr size_t kMinQueries = 12, kMinWeighted = 2;
    static constexpr bool kUnrolled = true;

    static __m128i load_lane(const uint8_t* from) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }
    static Type gather(const uint8_t* at, size_t stride) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(at)),
                                       load_lane(at + stride), 1);
    }
    static Type load(const uint8_t* from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    }
    static void store(uint8_t* to, Type x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
    }
    static Type all(uint32_t bits) { return _mm256_set1_epi32(static_cast<int>(bits)); }
    template <int S>
    static Type shift_left(Type x) {
        return _mm256_slli_epi16(x, S);
    }
    template <int S>
    static Type shift_right(Type x) {
        return _mm256_srli_epi16(x, S);
    }
    static Type invert(Type x) { return _mm256_xor_si256(x, all(~0u)); }
    static Type bit_and(Type a, Type b) { return _mm256_and_si256(a, b); }
    static Type bit_xor(Type a, Type b) { return _mm256_xor_si256(a, b); }
    static Type xor_and(Type a, Type b, Type mask) { return bit_and(bit_xor(a, b), mask); }
    static Type majority(Type a, Type b, Type c) {
        return _mm256_or_si256(bit_and(a, b), bit_and(c, _mm256_or_si256(a, b)));
    }
    static Type full_add(Type& sum, Type x, Type y) {
        const Type either = bit_xor(x, y);
        const Type carry = _mm256_or_si256(_mm256_andnot_si256(either, x), bit_and(either, sum));
        sum = bit_xor(sum, either);
        return carry;
    }
    static Type zip_low(Type a, Type b) { return _mm256_unpacklo_epi8(a, b); }
    static Type zip_high(Type a, Type b) { return _mm256_unpackhi_epi8(a, b); }
    static bool full(Type x) { return _mm256_testc_si256(x, all(~0u)); }
    struct FineDistance {
        WeightedQuery query;
        size_t width;
        uint32_t operator()(const uint8_t* code) const {
            return weighted_distance<kFineBits>(code, width, query);
        }
    };
};

}  // namespace
}  // namespace embits
