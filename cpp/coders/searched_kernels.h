// The steps of encode_searched, once per instruction set: searched_kernels.inc says how, and each
// searched_*.cpp compiles it for one set. As in search/kernels.h, no inline function of the
// standard library may be called there.
#pragma once
#include "coders/searched.h"

namespace embits {

constexpr size_t kRowsAtOnce = 16;

// Room for the numbers of kRowsAtOnce rows.
struct SearchScratch {
    int16_t* rows;    // kRowsAtOnce x padded(dims)
    int16_t* signs;   // kRowsAtOnce x padded(bits)
    int32_t* scores;  // kRowsAtOnce x padded(bits)
    int32_t* product; // kRowsAtOnce x padded(bits)
    int32_t* base;    // padded(bits), of one row
    int32_t* mask;    // padded(bits): 0 for a bit of 1, -1 for a bit of -1
    int32_t* diagonal;  // padded(bits)
};

struct SearchKernel {
    const char* name;
    // Encodes n <= kRowsAtOnce vectors.
    void (*encode)(const SearchedWeights& coder, const float* vectors, size_t n,
                   const SearchScratch& scratch, uint8_t* codes);
};

extern const SearchKernel kSearchPortable, kSearchAvx2, kSearchAvx512;

}  // namespace embits
