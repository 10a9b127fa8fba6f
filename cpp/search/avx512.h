// AVX-512 vectors of codes: loads, and the rows that a comparison lets through.
//
// Codes of 8, 16, 32 and 64 bytes fill vectors as they lie. Other widths up to 64 bytes are spread
// into fields of those sizes by a masked load and a byte shuffle, which reads no byte past the
// codes; wider codes take several loads.
#pragma once
#include <immintrin.h>

#include "search/words.h"

namespace embits {
namespace {

constexpr size_t kVector = 64;

__mmask64 lowest_bits(size_t n) {
    return n >= kVector ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
}

// ---- Loads: codes side by side in fields of Words * 8 bytes, unused bytes zero.

struct ExactLoad {
    __m512i operator()(const uint8_t* codes) const { return _mm512_loadu_si512(codes); }
};

struct SpreadLoad {
    __mmask64 source = 0;  // the bytes to read
    __mmask64 used = 0;    // the bytes of the vector that get one
    __m512i from{};

    SpreadLoad(size_t width, size_t field) {
        alignas(kVector) uint8_t index[kVector] = {};
        for (size_t i = 0; i < kVector; ++i) {
            if (i % field >= width) continue;
            used |= __mmask64{1} << i;
            index[i] = static_cast<uint8_t>(i / field * width + i % field);
        }
        source = lowest_bits(kVector / field * width);
        from = _mm512_load_si512(index);
    }
    __m512i operator()(const uint8_t* codes) const {
        return _mm512_maskz_permutexvar_epi8(used, from, _mm512_maskz_loadu_epi8(source, codes));
    }
};

__m512i load_query(const uint8_t* query, size_t width, size_t field) {
    alignas(kVector) uint8_t repeated[kVector] = {};
    for (size_t i = 0; i < kVector; i += field) std::memcpy(repeated + i, query, width);
    return _mm512_load_si512(repeated);
}

template <class Lane>
Hit* write_hits(__m512i distances, uint64_t mask, size_t row, Hit* hits) {
    alignas(kVector) Lane distance[kVector / sizeof(Lane)];
    _mm512_store_si512(distance, distances);
    for (; mask; mask &= mask - 1) {
        const unsigned i = static_cast<unsigned>(_tzcnt_u64(mask));
        *hits++ = {static_cast<uint32_t>(row + i), static_cast<uint32_t>(distance[i])};
    }
    return hits;
}

// ---- Weighted bits

template <size_t Bits>
struct Weights {
    __m512i code;
    __m512i planes[Bits];

    __m512i operator()(__m512i codes) const {
        constexpr int kDifferingAndWeighted = 0x28;  // (codes ^ code) & plane
        __m512i sum = _mm512_setzero_si512();
        for (size_t p = 0; p < Bits; ++p) {
            const __m512i bits =
                _mm512_ternarylogic_epi64(codes, code, planes[p], kDifferingAndWeighted);
            sum = _mm512_add_epi64(_mm512_add_epi64(sum, sum), _mm512_popcnt_epi64(bits));
        }
        return sum;
    }
};

template <size_t Bits>
Weights<Bits> load_weights(WeightedQuery query, size_t width, size_t at) {
    const __mmask64 bytes = lowest_bits(width - at);
    Weights<Bits> weigh;
    weigh.code = _mm512_maskz_loadu_epi8(bytes, query.code + at);
    for (size_t p = 0; p < Bits; ++p)
        weigh.planes[p] = _mm512_maskz_loadu_epi8(bytes, query.weights + p * width + at);
    return weigh;
}

template <size_t Bits>
uint32_t weighted_distance(const uint8_t* code, size_t width, WeightedQuery query) {
    __m512i sums = _mm512_setzero_si512();
    for (size_t i = 0; i < width; i += kVector) {
        const __m512i part = _mm512_maskz_loadu_epi8(lowest_bits(width - i), code + i);
        sums = _mm512_add_epi64(sums, load_weights<Bits>(query, width, i)(part));
    }
    return static_cast<uint32_t>(_mm512_reduce_add_epi64(sums));
}

// Keeps the weights in registers for codes of up to 64 bytes.
struct FineDistance {
    WeightedQuery query;
    size_t width;
    __mmask64 bytes;
    Weights<kFineBits> weigh;

    FineDistance(WeightedQuery of, size_t wide)
        : query(of), width(wide), bytes(lowest_bits(wide)), weigh(load_weights<kFineBits>(of, wide, 0)) {}

    uint32_t operator()(const uint8_t* code) const {
        if (width > kVector) return weighted_distance<kFineBits>(code, width, query);
        const __m512i sums = weigh(_mm512_maskz_loadu_epi8(bytes, code));
        return static_cast<uint32_t>(_mm512_reduce_add_epi64(sums));
    }
};

// ---- Planes of 512 rows

struct Vector {
    using Type = __m512i;
    static constexpr size_t kBytes = 64, kColumns = 16, kLanes = 4;
    static constexpr size_t kMinQueries = 24, kMinWeighted = 4;
    static constexpr bool kUnrolled = true;

    static __m128i load_lane(const uint8_t* from) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }
    static Type gather(const uint8_t* at, size_t stride) {
        Type x = _mm512_castsi128_si512(load_lane(at));
        x = _mm512_inserti32x4(x, load_lane(at + stride), 1);
        x = _mm512_inserti32x4(x, load_lane(at + 2 * stride), 2);
        return _mm512_inserti32x4(x, load_lane(at + 3 * stride), 3);
    }
    static Type load(const uint8_t* from) { return _mm512_loadu_si512(from); }
    static void store(uint8_t* to, Type x) { _mm512_storeu_si512(to, x); }
    static Type all(uint32_t bits) { return _mm512_set1_epi32(static_cast<int>(bits)); }
    template <int S>
    static Type shift_left(Type x) {
        return _mm512_slli_epi16(x, S);
    }
    template <int S>
    static Type shift_right(Type x) {
        return _mm512_srli_epi16(x, S);
    }
    // The constants of ternarylogic are the truth tables of the functions.
    static Type invert(Type x) { return _mm512_ternarylogic_epi64(x, x, x, 0x55); }
    static Type bit_and(Type a, Type b) { return _mm512_and_si512(a, b); }
    static Type bit_xor(Type a, Type b) { return _mm512_xor_si512(a, b); }
    static Type xor_and(Type a, Type b, Type mask) {
        return _mm512_ternarylogic_epi64(a, b, mask, 0x28);
    }
    static Type majority(Type a, Type b, Type c) {
        return _mm512_ternarylogic_epi64(a, b, c, 0xe8);
    }
    static Type full_add(Type& sum, Type x, Type y) {
        const Type carry = majority(sum, x, y);
        sum = _mm512_ternarylogic_epi64(sum, x, y, 0x96);
        return carry;
    }
    static Type zip_low(Type a, Type b) { return _mm512_unpacklo_epi8(a, b); }
    static Type zip_high(Type a, Type b) { return _mm512_unpackhi_epi8(a, b); }
    static bool full(Type x) { return _mm512_cmpneq_epi64_mask(x, all(~0u)) == 0; }
    using FineDistance = embits::FineDistance;
};

}  // namespace
}  // namespace embits
