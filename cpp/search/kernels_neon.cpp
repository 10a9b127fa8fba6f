// For 64-bit ARM, where NEON is always there.
//
// CNT counts the bits of sixteen bytes. The byte counts of up to 31 vectors fit a byte lane, so
// they are added as bytes. At the usual widths, pairwise additions (ADDP) sum the lanes of four or
// eight codes together; at others a sum across the lanes (ADDLV, 4 to 6 cycles) ends each code.
#include <arm_neon.h>

#include "search/kernels.h"
#include "search/plane_kernel.h"
#include "search/words.h"

namespace embits {
namespace {

constexpr size_t kVector = 16;
constexpr size_t kMaxVectors = 31;  // 31 * 8 is the largest count that fits a byte

uint8x16_t differing_bits(const uint8_t* a, const uint8_t* b) {
    return vcntq_u8(veorq_u8(vld1q_u8(a), vld1q_u8(b)));
}

uint32_t popcount(uint64_t x) { return vaddv_u8(vcnt_u8(vcreate_u8(x))); }

uint32_t hamming(const uint8_t* a, const uint8_t* b, size_t width) {
    uint32_t sum = 0;
    size_t i = 0;
    while (i + kVector <= width) {
        uint8x16_t counts = vdupq_n_u8(0);
        for (size_t v = 0; v < kMaxVectors && i + kVector <= width; ++v, i += kVector)
            counts = vaddq_u8(counts, differing_bits(a + i, b + i));
        sum += vaddlvq_u8(counts);
    }
    return sum + hamming_words(a + i, b + i, width - i, popcount);
}

// The byte counts of four codes, or of eight codes of 8 bytes, into their distances: pairwise
// sums keep the order of the codes.
template <size_t Width>
uint32x4_t distances_of(const uint8_t* codes, const uint8x16_t* query) {
    constexpr size_t kLong = Width / kVector;
    uint8x16_t counts[4];
    for (size_t c = 0; c < 4; ++c, codes += Width) {
        counts[c] = vcntq_u8(veorq_u8(vld1q_u8(codes), query[0]));
        for (size_t i = 1; i < kLong; ++i)
            counts[c] = vaddq_u8(counts[c],
                                 vcntq_u8(veorq_u8(vld1q_u8(codes + kVector * i), query[i])));
    }
    const uint8x16_t fours = vpaddq_u8(vpaddq_u8(counts[0], counts[1]),  //
                                       vpaddq_u8(counts[2], counts[3]));
    return vpaddlq_u16(vpaddlq_u8(fours));
}

// Codes of whole vectors, four at a time.
template <size_t Width>
size_t scan_fours(const uint8_t* codes, size_t n, const uint8_t* query, uint32_t limit,
                  Hit* hits) {
    uint8x16_t wanted[Width / kVector];
    for (size_t i = 0; i < Width / kVector; ++i) wanted[i] = vld1q_u8(query + kVector * i);
    const uint32x4_t limits = vdupq_n_u32(limit);
    size_t found = 0, row = 0;
    for (; row + 4 <= n; row += 4) {
        const uint32x4_t distances = distances_of<Width>(codes + row * Width, wanted);
        if (!vmaxvq_u32(vcltq_u32(distances, limits))) continue;
        uint32_t distance[4];
        vst1q_u32(distance, distances);
        for (size_t i = 0; i < 4; ++i)
            if (distance[i] < limit) hits[found++] = {static_cast<uint32_t>(row + i), distance[i]};
    }
    for (; row < n; ++row) {
        const uint32_t distance = hamming(codes + row * Width, query, Width);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

size_t scan(const uint8_t* codes, size_t n, size_t width, const uint8_t* query, uint32_t limit,
            Hit* hits) {
    size_t found = 0;
    for (size_t row = 0; row < n; ++row) {
        const uint32_t distance = hamming(codes + row * width, query, width);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

// Codes of 8 bytes: the pairwise sums of two rounds leave two bytes of each of eight codes.
size_t scan_short(const uint8_t* codes, size_t n, const uint8_t* query, uint32_t limit,
                  Hit* hits) {
    const uint8x16_t wanted = vcombine_u8(vld1_u8(query), vld1_u8(query));
    const uint16x8_t limits = vdupq_n_u16(static_cast<uint16_t>(limit < 65 ? limit : 65));
    size_t found = 0, row = 0;
    for (; row + 8 <= n; row += 8) {
        uint8x16_t counts[4];
        for (size_t v = 0; v < 4; ++v)
            counts[v] = vcntq_u8(veorq_u8(vld1q_u8(codes + 8 * row + kVector * v), wanted));
        const uint16x8_t distances = vpaddlq_u8(vpaddq_u8(vpaddq_u8(counts[0], counts[1]),  //
                                                          vpaddq_u8(counts[2], counts[3])));
        if (!vmaxvq_u16(vcltq_u16(distances, limits))) continue;
        uint16_t distance[8];
        vst1q_u16(distance, distances);
        for (size_t i = 0; i < 8; ++i)
            if (distance[i] < limit) hits[found++] = {static_cast<uint32_t>(row + i), distance[i]};
    }
    const size_t rest = scan(codes + 8 * row, n - row, 8, query, limit, hits + found);
    for (size_t i = 0; i < rest; ++i) hits[found + i].row += static_cast<uint32_t>(row);
    return found + rest;
}

size_t below(const uint8_t* codes, size_t n, size_t width, const uint8_t* query, uint32_t limit,
             Hit* hits) {
    switch (width) {
        case 8: return scan_short(codes, n, query, limit, hits);
        case 16: return scan_fours<16>(codes, n, query, limit, hits);
        case 32: return scan_fours<32>(codes, n, query, limit, hits);
        case 64: return scan_fours<64>(codes, n, query, limit, hits);
        default: return scan(codes, n, width, query, limit, hits);
    }
}

// The weight of the differing bits. A byte weighs at most 8 * 15 with four bits, which still fits
// a byte lane.
template <size_t Bits>
uint32_t weigh(uint8x16_t differing, const uint8_t* weights, size_t width) {
    constexpr size_t kHigh = Bits > 4 ? 4 : Bits;
    uint8x16_t sum = vdupq_n_u8(0);
    for (size_t p = 0; p < kHigh; ++p, weights += width)
        sum = vaddq_u8(vaddq_u8(sum, sum), vcntq_u8(vandq_u8(differing, vld1q_u8(weights))));
    const uint32_t weight = vaddlvq_u8(sum);
    if constexpr (Bits > kHigh)
        return (weight << (Bits - kHigh)) + weigh<Bits - kHigh>(differing, weights, width);
    return weight;
}

template <size_t Bits>
uint32_t weighted_distance(const uint8_t* code, size_t width, WeightedQuery query) {
    const size_t whole = width / kVector * kVector;
    uint32_t distance = weigh_words<Bits>(code, query, whole, width, popcount);
    for (size_t i = 0; i < whole; i += kVector) {
        const uint8x16_t differing = veorq_u8(vld1q_u8(code + i), vld1q_u8(query.code + i));
        distance += weigh<Bits>(differing, query.weights + i, width);
    }
    return distance;
}

size_t weighted_below(const uint8_t* codes, size_t n, size_t width, WeightedQuery query,
                      uint32_t limit, Hit* hits) {
    size_t found = 0;
    for (size_t row = 0; row < n; ++row, codes += width) {
        const uint32_t distance = weighted_distance<kWeightBits>(codes, width, query);
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

// ---- Planes of 128 rows

struct Vector {
    using Type = uint8x16_t;
    static constexpr size_t kBytes = 16, kColumns = 16, kLanes = 1;
    static constexpr size_t kMinQueries = 12, kMinWeighted = 3;
    static constexpr bool kUnrolled = true;

    static Type gather(const uint8_t* at, size_t) { return vld1q_u8(at); }
    static Type load(const uint8_t* from) { return vld1q_u8(from); }
    static void store(uint8_t* to, Type x) { vst1q_u8(to, x); }
    static Type all(uint32_t bits) { return vreinterpretq_u8_u32(vdupq_n_u32(bits)); }
    template <int S>
    static Type shift_left(Type x) {
        return vshlq_n_u8(x, S);
    }
    template <int S>
    static Type shift_right(Type x) {
        return vshrq_n_u8(x, S);
    }
    static Type invert(Type x) { return vmvnq_u8(x); }
    static Type bit_and(Type a, Type b) { return vandq_u8(a, b); }
    static Type bit_xor(Type a, Type b) { return veorq_u8(a, b); }
    static Type xor_and(Type a, Type b, Type mask) { return vandq_u8(veorq_u8(a, b), mask); }
    // Where a and b differ, c decides.
    static Type majority(Type a, Type b, Type c) { return vbslq_u8(veorq_u8(a, b), c, a); }
    static Type full_add(Type& sum, Type x, Type y) {
        const Type either = veorq_u8(x, y), carry = vbslq_u8(either, sum, x);
        sum = veorq_u8(sum, either);
        return carry;
    }
    static Type zip_low(Type a, Type b) { return vzip1q_u8(a, b); }
    static Type zip_high(Type a, Type b) { return vzip2q_u8(a, b); }
    static bool full(Type x) { return vminvq_u32(vreinterpretq_u32_u8(x)) == ~uint32_t{0}; }
    struct FineDistance {
        WeightedQuery query;
        size_t width;
        uint32_t operator()(const uint8_t* code) const {
            return weighted_distance<kFineBits>(code, width, query);
        }
    };
};

}  // namespace

extern const Kernels kNeon;  // dispatch.cpp lists it
const Kernels kNeon = {"neon", below, weighted_below, hamming,
                       PlaneFunctions<Vector>::kernel()};

}  // namespace embits
