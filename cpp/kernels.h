// The Hamming kernels, one table per instruction set.
//
// A kernel file fills a `Kernels` with its functions; dispatch.cpp picks one table, once, from
// what the processor can do. Every kernel gives the portable one's answer, bit for bit.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

struct Kernels {
    const char* name;
    // distances[i] = Hamming distance of `query` and row i of `codes` (n rows of `width` bytes).
    void (*distances)(const uint8_t* codes, size_t n, size_t width, const uint8_t* query,
                      int32_t* distances);
};

extern const Kernels kPortable;

// The table in use: the best one this processor runs, unless EMBITS_SIMD names another.
const Kernels& kernels();

}  // namespace embits
