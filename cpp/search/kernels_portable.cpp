// Plain C++ for any processor. The other kernels must give the same answers.
//
// A 64-bit word is counted with a dozen shifts and adds (Hacker's Delight, 5-1): without a flag
// for newer processors, compilers make __builtin_popcountll a call to a table look-up. The counts
// of several words are added byte by byte first, a loop that compilers turn into vectors.
#include "search/kernels.h"
#include "search/plane_kernel.h"
#include "search/words.h"

namespace embits {
namespace {

constexpr size_t kMaxWords = 31;  // 31 * 8 is the largest count that fits a byte

// How many bits are set in each byte.
uint64_t byte_counts(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
}

uint32_t sum_of_bytes(uint64_t counts) {
    counts = (counts & 0x00ff00ff00ff00ffu) + ((counts >> 8) & 0x00ff00ff00ff00ffu);
    return static_cast<uint32_t>((counts * 0x0001000100010001u) >> 48);
}

uint32_t popcount(uint64_t x) { return sum_of_bytes(byte_counts(x)); }

EMBITS_INLINE uint32_t hamming(const uint8_t* a, const uint8_t* b, size_t width) {
    const size_t words = width / 8;
    uint32_t sum = 0;
    for (size_t first = 0; first < words; first += kMaxWords) {
        const size_t end = words - first < kMaxWords ? words : first + kMaxWords;
        uint64_t counts = 0;
        for (size_t w = first; w < end; ++w)
            counts += byte_counts(word_at(a + 8 * w, 8) ^ word_at(b + 8 * w, 8));
        sum += sum_of_bytes(counts);
    }
    const size_t i = 8 * words;
    return i < width ? sum + popcount(word_at(a + i, width - i) ^ word_at(b + i, width - i)) : sum;
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
            uint64_t counts = 0;  // at most 8 * 15 in a byte
            for (size_t p = 0; p < kWeightBits; ++p)
                counts = 2 * counts +
                         byte_counts(differing & word_at(query.weights + p * width + i, left));
            distance += sum_of_bytes(counts);
        }
        if (distance < limit) hits[found++] = {static_cast<uint32_t>(row), distance};
    }
    return found;
}

uint32_t distance(const uint8_t* a, const uint8_t* b, size_t width) {
    return hamming(a, b, width);
}

// Planes of 64 rows in a word; the bytes of a code come in order of weight on every processor.
struct Vector {
    using Type = uint64_t;
    static constexpr size_t kBytes = 8, kColumns = 8, kLanes = 1;
    static constexpr size_t kMinQueries = 12, kMinWeighted = 2;
    static constexpr bool kUnrolled = false;

    static Type gather(const uint8_t* at, size_t) {
        Type word = 0;
        for (size_t i = 0; i < 8; ++i) word |= Type{at[i]} << (8 * i);
        return word;
    }
    static Type load(const uint8_t* from) { return word_at(from); }
    static void store(uint8_t* to, Type x) { std::memcpy(to, &x, sizeof x); }
    static Type all(uint32_t bits) { return Type{bits} << 32 | bits; }
    template <int S>
    static Type shift_left(Type x) {
        return x << S;
    }
    template <int S>
    static Type shift_right(Type x) {
        return x >> S;
    }
    static Type invert(Type x) { return ~x; }
    static Type bit_and(Type a, Type b) { return a & b; }
    static Type bit_xor(Type a, Type b) { return a ^ b; }
    static Type xor_and(Type a, Type b, Type mask) { return (a ^ b) & mask; }
    static Type majority(Type a, Type b, Type c) { return (a & b) | (c & (a | b)); }
    static Type full_add(Type& sum, Type x, Type y) {
        const Type either = x ^ y, carry = (x & y) | (either & sum);
        sum ^= either;
        return carry;
    }
    // Four bytes, each followed by a zero.
    static Type spread(uint64_t x) {
        x = (x & 0xffffffffu) | (x & 0xffff0000u) << 16;
        x &= 0x0000ffff0000ffffu;
        return (x | x << 8) & 0x00ff00ff00ff00ffu;
    }
    static Type zip_low(Type a, Type b) { return spread(a) | spread(b) << 8; }
    static Type zip_high(Type a, Type b) { return spread(a >> 32) | spread(b >> 32) << 8; }
    static bool full(Type x) { return x == ~Type{0}; }
    struct FineDistance {
        WeightedQuery query;
        size_t width;
        uint32_t operator()(const uint8_t* code) const {
            return weigh_words<kFineBits>(code, query, 0, width, popcount);
        }
    };
};

}  // namespace

const Kernels kPortable = {"portable", below, weighted_below, distance,
                           PlaneFunctions<Vector>::kernel()};

}  // namespace embits
