// For x86-64 processors from 2013 on.
//
// AVX2 has no population count. Where codes fill whole vectors, two look-ups of nibbles (pshufb)
// count the bits of 32 bytes in seven instructions, and the sums over a code's words are shared
// by four vectors. Other widths take POPCNT, one 64-bit word at a time. On Zen 4 the look-ups
// were 2.4, 1.7, 1.2 and 1.2 times as fast as POPCNT at 64, 128, 256 and 512 bits; on Intel,
// which has one POPCNT a cycle where AMD has three or four, they gain more.
#include <immintrin.h>

#include <cstring>

#include "search/plane_kernel.h"
#include "search/words.h"

namespace embits {
namespace {

uint32_t popcount(uint64_t x) { return static_cast<uint32_t>(_mm_popcnt_u64(x)); }

// ---- 64, 128, 256, 512, 768 and 1,024 bits: whole vectors

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

// [a's low 16 bytes folded to 8, b's; a's high 16 bytes folded to 8, b's]
__m256i fold(__m256i a, __m256i b) {
    return _mm256_add_epi8(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

// Four vectors of byte counts into the distances of 16, 8 or 4 codes, in lanes of 16 bits; see
// `lane_of` for which is where, lanes between them are zero.
template <size_t Words>
__m256i sum_words(const __m256i (&counts)[4]) {
    const __m256i zero = _mm256_setzero_si256();
    if constexpr (Words == 1) {
        __m256i packed = zero;
        for (size_t v = 4; v-- > 0;)
            packed = _mm256_or_si256(_mm256_slli_epi64(packed, 16),
                                     _mm256_sad_epu8(counts[v], zero));
        return packed;
    }
    const __m256i first = fold(counts[0], counts[1]), second = fold(counts[2], counts[3]);
    if constexpr (Words == 2)
        return _mm256_or_si256(_mm256_sad_epu8(first, zero),
                               _mm256_slli_epi64(_mm256_sad_epu8(second, zero), 16));
    return _mm256_sad_epu8(_mm256_add_epi8(_mm256_permute2x128_si256(first, second, 0x20),
                                           _mm256_permute2x128_si256(first, second, 0x31)),
                           zero);
}

template <size_t Words>
size_t lane_of(size_t code) {
    if (Words == 1) return code % 4 * 4 + code / 4;
    if (Words == 2) return code % 2 * 8 + code / 2 % 2 * 4 + code / 4;
    return code * 4;
}

template <size_t Words>
__m256i distances_of(const uint8_t* codes, const __m256i* query) {
    constexpr size_t kLong = Words > 4 ? Words / 4 : 1;  // vectors of a code
    __m256i counts[4] = {};
    for (size_t v = 0; v < 4; ++v)
        for (size_t i = 0; i < kLong; ++i) {
            const __m256i code = load(codes + 32 * (v * kLong + i));
            counts[v] = _mm256_add_epi8(counts[v], byte_counts(_mm256_xor_si256(code, query[i])));
        }
    return sum_words<Words>(counts);
}

template <size_t Words>
size_t scan_words(const uint8_t* codes, size_t n, const uint8_t* query, uint32_t limit,
                  Hit* hits) {
    constexpr size_t per_vector = Words >= 4 ? 1 : 4 / Words, group = 4 * per_vector;
    constexpr size_t width = 8 * Words, kLong = Words > 4 ? Words / 4 : 1;
    __m256i wanted[kLong];
    for (size_t i = 0; i < 32 * kLong; i += width < 32 ? width : 32)
        std::memcpy(reinterpret_cast<uint8_t*>(wanted) + i, query + i % width,
                    width < 32 ? width : 32);
    if (limit > 64 * Words + 1) limit = 64 * Words + 1;
    const __m256i limits = Words == 1   ? _mm256_set1_epi16(static_cast<short>(limit))
                           : Words == 2 ? _mm256_set1_epi64x(limit << 16 | limit)
                                        : _mm256_set1_epi64x(limit);
    size_t found = 0;
    // The first `count` of a group of codes, one by one: the vector has their order mixed up.
    const auto write_hits = [&](__m256i distances, size_t row, size_t count) {
        uint16_t lanes[16];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), distances);
        for (size_t i = 0; i < count; ++i) {
            const uint32_t d = lanes[lane_of<Words>(i)];
            if (d < limit) hits[found++] = {static_cast<uint32_t>(row + i), d};
        }
    };
    size_t row = 0;
    for (; row + group <= n; row += group) {
        const __m256i distances = distances_of<Words>(codes + row * width, wanted);
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi16(limits, distances)))
            write_hits(distances, row, group);
    }
    if (row < n) {
        uint8_t last[group * width] = {};
        std::memcpy(last, codes + row * width, (n - row) * width);
        write_hits(distances_of<Words>(last, wanted), row, n - row);
    }
    return found;
}

// ---- Other widths: POPCNT on 64-bit words

// Codes of more than eight bytes. The last word of a code is its last eight bytes: it overlaps
// the word before it, and the mask takes out what was counted there. The number of words before
// it is known to the compiler, or 0.
template <size_t Words>
size_t scan_long(const uint8_t* codes, size_t n, size_t width, const uint8_t* query,
                 uint32_t limit, Hit* hits) {
    const size_t words = Words ? Words : (width - 1) / 8;
    const uint64_t mask = ~uint64_t{0} << (8 * (8 * words + 8 - width));
    const uint64_t wanted = word_at(query + width - 8);
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        uint32_t distance = popcount((word_at(codes + width - 8) ^ wanted) & mask);
        for (size_t w = 0; w < words; ++w)
            distance += popcount(word_at(codes + 8 * w) ^ word_at(query + 8 * w));
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

// Codes of less than eight bytes: eight are read and the mask drops the next codes', but for the
// last rows, where eight bytes would pass the end.
size_t scan_short(const uint8_t* codes, size_t n, size_t width, const uint8_t* query,
                  uint32_t limit, Hit* hits) {
    const uint64_t mask = (uint64_t{1} << (8 * width)) - 1;
    const uint64_t wanted = word_at(query, width);
    const size_t readable = n * width < 8 ? 0 : (n * width - 8) / (width ? width : 1) + 1;
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        const uint64_t word = row < readable ? word_at(codes) & mask : word_at(codes, width);
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
        case 96: return scan_words<12>(codes, n, query, limit, hits);
        case 128: return scan_words<16>(codes, n, query, limit, hits);
    }
    if (width < 8) return scan_short(codes, n, width, query, limit, hits);
    switch ((width - 1) / 8) {
        case 1: return scan_long<1>(codes, n, width, query, limit, hits);
        case 2: return scan_long<2>(codes, n, width, query, limit, hits);
        case 3: return scan_long<3>(codes, n, width, query, limit, hits);
        case 4: return scan_long<4>(codes, n, width, query, limit, hits);
        case 5: return scan_long<5>(codes, n, width, query, limit, hits);
        case 6: return scan_long<6>(codes, n, width, query, limit, hits);
        default: return scan_long<0>(codes, n, width, query, limit, hits);
    }
}

// ---- Weighted bits

// A byte of differing bits weighs at most 8 * 15, which still fits a byte.
__m256i weigh(__m256i differing, const uint8_t* plane, size_t width) {
    __m256i sum = _mm256_setzero_si256();
    for (size_t p = 0; p < kWeightBits; ++p, plane += width)
        sum = _mm256_add_epi8(_mm256_add_epi8(sum, sum),
                              byte_counts(_mm256_and_si256(differing, load(plane))));
    return sum;
}

// Codes of 8 or 16 bytes, several to a vector.
size_t scan_weighted_short(const uint8_t* codes, size_t n, size_t width, WeightedQuery query,
                           uint32_t limit, Hit* hits) {
    const size_t per_vector = 32 / width;
    uint8_t code[32], planes[kWeightBits * 32];
    for (size_t i = 0; i < 32; i += width) {
        std::memcpy(code + i, query.code, width);
        for (size_t p = 0; p < kWeightBits; ++p)
            std::memcpy(planes + 32 * p + i, query.planes + p * width, width);
    }
    size_t found = 0;
    for (size_t row = 0; row < n; row += per_vector) {
        const size_t count = n - row < per_vector ? n - row : per_vector;
        uint8_t last[32] = {};
        if (count < per_vector) std::memcpy(last, codes + row * width, count * width);
        const __m256i block = load(count < per_vector ? last : codes + row * width);
        uint64_t words[4];
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(words),
            _mm256_sad_epu8(weigh(_mm256_xor_si256(block, load(code)), planes, 32),
                            _mm256_setzero_si256()));
        for (size_t i = 0; i < count; ++i) {
            const uint64_t distance = width == 8 ? words[i] : words[2 * i] + words[2 * i + 1];
            if (distance < limit)
                hits[found++] = {static_cast<uint32_t>(row + i), static_cast<uint32_t>(distance)};
        }
    }
    return found;
}

size_t weighted_below(const uint8_t* codes, size_t n, size_t width, WeightedQuery query,
                      uint32_t limit, Hit* hits) {
    if (width == 8 || width == 16)
        return scan_weighted_short(codes, n, width, query, limit, hits);
    const size_t whole = width / 32 * 32;
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        __m256i sums = _mm256_setzero_si256();
        for (size_t i = 0; i < whole; i += 32) {
            const __m256i differing = _mm256_xor_si256(load(codes + i), load(query.code + i));
            const __m256i weights = weigh(differing, query.planes + i, width);
            sums = _mm256_add_epi64(sums, _mm256_sad_epu8(weights, _mm256_setzero_si256()));
        }
        const __m128i halves =
            _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        const uint32_t distance =
            static_cast<uint32_t>(_mm_cvtsi128_si32(halves) + _mm_extract_epi32(halves, 2)) +
            weigh_words(codes, query, whole, width, popcount);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

uint32_t distance(const uint8_t* a, const uint8_t* b, size_t width) {
    return hamming_words(a, b, width, popcount);
}

// ---- Planes of 256 rows

struct Vector {
    using Type = __m256i;
    static constexpr size_t kBytes = 32, kColumns = 16, kLanes = 2;
    static constexpr size_t kMinQueries = 12;
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
};

}  // namespace

extern const Kernels kAvx2;  // dispatch.cpp lists it
const Kernels kAvx2 = {"avx2", below, weighted_below, distance, PlaneFunctions<Vector>::kernel()};

}  // namespace embits
