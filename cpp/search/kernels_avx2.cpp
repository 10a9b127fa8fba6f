// For x86-64 processors from 2013 on.
//
// AVX2 has no population count. Where codes fill whole vectors, two look-ups of nibbles (pshufb)
// count the bits of 32 bytes in seven instructions, and the sums over a code's words are shared
// by four vectors. POPCNT counts one 64-bit word and runs beside the look-ups, so each turn of the
// loop counts some codes with it. On Zen 4 this is 1.1, 1.2, 1.4 and 1.2 times as fast as look-ups
// alone at 64, 128, 256 and 512 bits, and slower at 1,024. Prefetching gains 5 % at 512 bits and
// loses at all other widths. Widths that do not fill vectors use POPCNT only.
#include "search/avx2.h"
#include "search/kernels.h"
#include "search/plane_kernel.h"

namespace embits {
namespace {

// ---- 64, 128, 256, 512, 768 and 1,024 bits: whole vectors

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
uint32_t count_words(const uint8_t* code, const uint64_t* query) {
    uint32_t distance = 0;
    for (size_t w = 0; w < Words; ++w) distance += popcount(word_at(code + 8 * w) ^ query[w]);
    return distance;
}

template <size_t Words>
size_t scan_words(const uint8_t* codes, size_t n, const uint8_t* query, uint32_t limit,
                  Hit* hits) {
    constexpr size_t per_vector = Words >= 4 ? 1 : 4 / Words, group = 4 * per_vector;
    constexpr size_t width = 8 * Words, kLong = Words > 4 ? Words / 4 : 1;
    // The look-ups and POPCNT use different parts of the processor, so a turn has codes for both.
    constexpr size_t kGroups = Words == 4 ? 2 : 1;
    constexpr size_t kCounted = Words <= 4 ? 4 : Words < 16 ? 2 : 0;
    constexpr size_t turn = kGroups * group + kCounted;
    constexpr size_t kAhead = Words == 8 ? 8192 : 0;  // bytes to prefetch; 0 for none
    uint64_t words[Words];
    std::memcpy(words, query, width);
    __m256i wanted[kLong];
    for (size_t i = 0; i < 32 * kLong; i += width < 32 ? width : 32)
        std::memcpy(reinterpret_cast<uint8_t*>(wanted) + i, query + i % width,
                    width < 32 ? width : 32);
    if (limit > 64 * Words + 1) limit = 64 * Words + 1;
    const __m256i limits = Words == 1   ? _mm256_set1_epi16(static_cast<short>(limit))
                           : Words == 2 ? _mm256_set1_epi64x(limit << 16 | limit)
                                        : _mm256_set1_epi64x(limit);
    size_t found = 0;
    // The codes of a group, one by one: the vector has their order mixed up.
    const auto write_hits = [&](__m256i distances, size_t row) {
        uint16_t lanes[16];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), distances);
        for (size_t i = 0; i < group; ++i) {
            const uint32_t d = lanes[lane_of<Words>(i)];
            if (d < limit) hits[found++] = {static_cast<uint32_t>(row + i), d};
        }
    };
    const auto write_hit = [&](uint32_t distance, size_t row) {
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    };
    size_t row = 0;
    for (; row + turn <= n; row += turn) {
        const uint8_t* code = codes + row * width;
        for (size_t i = 0; kAhead && i < turn * width; i += 64)
            _mm_prefetch(reinterpret_cast<const char*>(code + kAhead + i), _MM_HINT_T0);
        __m256i distances[kGroups];
        int near = 0;
        for (size_t g = 0; g < kGroups; ++g, code += group * width) {
            distances[g] = distances_of<Words>(code, wanted);
            near |= _mm256_movemask_epi8(_mm256_cmpgt_epi16(limits, distances[g]));
        }
        uint32_t counted[kCounted + 1];
        for (size_t i = 0; i < kCounted; ++i, code += width) {
            counted[i] = count_words<Words>(code, words);
            near |= counted[i] < limit;
        }
        if (!near) continue;
        for (size_t g = 0; g < kGroups; ++g) write_hits(distances[g], row + g * group);
        for (size_t i = 0; i < kCounted; ++i) write_hit(counted[i], row + kGroups * group + i);
    }
    for (; row < n; ++row) write_hit(count_words<Words>(codes + row * width, words), row);
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

// Codes of 8 or 16 bytes, several to a vector.
size_t scan_weighted_short(const uint8_t* codes, size_t n, size_t width, WeightedQuery query,
                           uint32_t limit, Hit* hits) {
    const size_t per_vector = 32 / width;
    uint8_t code[32], planes[kWeightBits * 32];
    for (size_t i = 0; i < 32; i += width) {
        std::memcpy(code + i, query.code, width);
        for (size_t p = 0; p < kWeightBits; ++p)
            std::memcpy(planes + 32 * p + i, query.weights + p * width, width);
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
            weigh<kWeightBits>(_mm256_xor_si256(block, load(code)), planes, 32));
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
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        const uint32_t distance = weighted_distance<kWeightBits>(codes, width, query);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

uint32_t distance(const uint8_t* a, const uint8_t* b, size_t width) {
    return hamming_words(a, b, width, popcount);
}

}  // namespace

extern const Kernels kAvx2;  // dispatch.cpp lists it
const Kernels kAvx2 = {"avx2", below, weighted_below, distance,
                       PlaneFunctions<Vector>::kernel()};

}  // namespace embits
