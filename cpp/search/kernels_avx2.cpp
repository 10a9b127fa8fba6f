// For x86-64 processors from 2013 on.
//
// AVX2 has no population count. Where codes fill whole vectors, two look-ups of nibbles (pshufb)
// and one sum of differences (vpsadbw) count the bits of four 64-bit words in seven instructions,
// and packing brings the sums of a code's words together: 69 instructions for eight codes of 256
// bits. POPCNT counts one 64-bit word and runs beside the look-ups, so each turn of the loop counts
// some codes with it. On Zen 4, 341,479 codes take 50, 102, 205 and 507 microseconds at 64, 128,
// 256 and 512 bits. Adding up the same bytes takes 28, 55, 125 and 430: up to 256 bits the number
// of instructions is the limit, from 512 bits on memory is. Prefetching gains 10 % at 512 bits and
// loses at all other widths. Widths that do not fill vectors use POPCNT only.
#include <type_traits>

#include "search/avx2.h"
#include "search/kernels.h"
#include "search/plane_kernel.h"

namespace embits {
namespace {

// ---- 64, 128 and 256 bits, and multiples of 256: whole vectors

// A code of several vectors has at most this many: the sums of its bytes stay below 256.
constexpr size_t kMaxVectors = 31;

// The number of bits in each 64-bit word in which four codes of `vectors` differ from the query, in
// lanes of 16 bits: per half, two words of each code. A byte of `low` is 4 minus the bits of a low
// nibble, a byte of `high` is 4 plus the bits of a high one, and vpsadbw adds up their differences.
EMBITS_INLINE __m256i word_counts(const uint8_t* codes, const __m256i* query, size_t vectors) {
    const __m256i less = _mm256_setr_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0,  //
                                          4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0);
    const __m256i more = _mm256_setr_epi8(4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8,  //
                                          4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8);
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low[4] = {}, high[4] = {}, counts[4];
    for (size_t i = 0; i < vectors; ++i)
        for (size_t code = 0; code < 4; ++code) {
            const __m256i x = _mm256_xor_si256(load(codes + 32 * (vectors * code + i)), query[i]);
            const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble);
            low[code] = _mm256_add_epi8(
                low[code], _mm256_shuffle_epi8(less, _mm256_and_si256(x, nibble)));
            high[code] = _mm256_add_epi8(high[code], _mm256_shuffle_epi8(more, upper));
        }
    for (size_t code = 0; code < 4; ++code)
        counts[code] = _mm256_sad_epu8(low[code], high[code]);
    return _mm256_packus_epi32(_mm256_packus_epi32(counts[0], counts[1]),
                               _mm256_packus_epi32(counts[2], counts[3]));
}

// The distances of a group of codes: 16 of one word in lanes of 16 bits, or 8 of more words in
// lanes of 32 bits. `lane_of` says which is where.
template <size_t Words>
EMBITS_INLINE __m256i distances_of(const uint8_t* codes, const __m256i* query, size_t vectors) {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i counts = word_counts(codes, query, vectors);
    if constexpr (Words == 1) return counts;
    const __m256i pairs = _mm256_madd_epi16(counts, ones);
    if constexpr (Words == 2) return pairs;
    const __m256i next =
        _mm256_madd_epi16(word_counts(codes + 128 * vectors, query, vectors), ones);
    return _mm256_add_epi32(_mm256_permute2x128_si256(pairs, next, 0x20),
                            _mm256_permute2x128_si256(pairs, next, 0x31));
}

template <size_t Words>
size_t lane_of(size_t code) {
    if (Words == 1) return code % 4 / 2 * 8 + code / 4 * 2 + code % 2;
    if (Words == 2) return code % 2 * 4 + code / 2;
    return code;
}

EMBITS_INLINE uint32_t count_words(const uint8_t* code, const uint64_t* query, size_t words) {
    uint32_t distance = 0;
    for (size_t w = 0; w < words; ++w) distance += popcount(word_at(code + 8 * w) ^ query[w]);
    return distance;
}

// The number of words is known to the compiler, or 0.
template <size_t Words>
size_t scan_words(const uint8_t* codes, size_t n, size_t given_width, const uint8_t* query,
                  uint32_t limit, Hit* hits) {
    using Lane = std::conditional_t<Words == 1, uint16_t, uint32_t>;
    const size_t width = Words ? 8 * Words : given_width, n_words = width / 8;
    const size_t vectors = width > 32 ? width / 32 : 1;  // of a code
    constexpr size_t group = 32 / sizeof(Lane);
    // The look-ups and POPCNT use different parts of the processor, so a turn has codes for both.
    constexpr size_t kCounted = Words == 4 ? 3 : Words ? 2 : 0, turn = group + kCounted;
    constexpr size_t kAhead = Words == 8 ? 8192 : 0;  // bytes to prefetch; 0 for none
    uint64_t words[Words ? Words : 4 * kMaxVectors];
    std::memcpy(words, query, width);
    __m256i wanted[Words ? (Words + 3) / 4 : kMaxVectors];
    for (size_t i = 0; i < 32 * vectors; i += width < 32 ? width : 32)
        std::memcpy(reinterpret_cast<uint8_t*>(wanted) + i, query + i % width,
                    width < 32 ? width : 32);
    if (limit > 8 * width + 1) limit = static_cast<uint32_t>(8 * width + 1);
    const auto below_limit = [limit](__m256i distances) {
        const int l = static_cast<int>(limit);
        return _mm256_movemask_epi8(
            Words == 1 ? _mm256_cmpgt_epi16(_mm256_set1_epi16(static_cast<short>(l)), distances)
                       : _mm256_cmpgt_epi32(_mm256_set1_epi32(l), distances));
    };
    size_t found = 0;
    const auto write_hit = [&](uint32_t distance, size_t row) {
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    };
    size_t row = 0;
    for (; row + turn <= n; row += turn) {
        const uint8_t* code = codes + row * width;
        for (size_t i = 0; kAhead && i < turn * width; i += 64)
            _mm_prefetch(reinterpret_cast<const char*>(code + kAhead + i), _MM_HINT_T0);
        const __m256i distances = distances_of<Words>(code, wanted, vectors);
        int near = below_limit(distances);
        code += group * width;
        uint32_t counted[kCounted + 1];
        for (size_t i = 0; i < kCounted; ++i, code += width) {
            counted[i] = count_words(code, words, n_words);
            near |= counted[i] < limit;
        }
        if (!near) continue;
        Lane lanes[group];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), distances);
        for (size_t i = 0; i < group; ++i) write_hit(lanes[lane_of<Words>(i)], row + i);
        for (size_t i = 0; i < kCounted; ++i) write_hit(counted[i], row + group + i);
    }
    for (; row < n; ++row) write_hit(count_words(codes + row * width, words, n_words), row);
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
        case 8: return scan_words<1>(codes, n, width, query, limit, hits);
        case 16: return scan_words<2>(codes, n, width, query, limit, hits);
        case 32: return scan_words<4>(codes, n, width, query, limit, hits);
        case 64: return scan_words<8>(codes, n, width, query, limit, hits);
    }
    if (width > 0 && width % 32 == 0 && width <= 32 * kMaxVectors)
        return scan_words<0>(codes, n, width, query, limit, hits);
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
