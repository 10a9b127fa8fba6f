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

}  // namespace
}  // namespace embits
