// The scan kernels, one table per instruction set.
//
// A kernel file fills a `Kernels` with its functions; dispatch.cpp picks one table, once, from
// what the processor can do. Every kernel gives the portable one's answer, bit for bit, and reads
// no byte outside the arrays it is given.
//
// A kernel file keeps its helpers in an anonymous namespace and calls no inline function of the
// standard library: the linker keeps one copy of such a function, and if that were the copy
// compiled for the widest instructions, older processors would crash in it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "search/planes.h"

namespace embits {

struct Kernels {
    const char* name;

    // The rows whose Hamming distance to `query` is below `limit`, in row order; returns how
    // many. `codes` are n rows of `width` bytes (n < 2^32), and `hits` has room for n.
    size_t (*below)(const uint8_t* codes, size_t n, size_t width, const uint8_t* query,
                    uint32_t limit, Hit* hits);

    // The same where each differing bit adds its weight to the distance.
    size_t (*weighted_below)(const uint8_t* codes, size_t n, size_t width, WeightedQuery query,
                             uint32_t limit, Hit* hits);

    // The Hamming distance of two codes.
    uint32_t (*distance)(const uint8_t* a, const uint8_t* b, size_t width);

    PlaneKernel planes;  // for batches
};

extern const Kernels kPortable;  // the others are named in dispatch.cpp

// The tables this processor can run, slowest first; the list ends with a null pointer.
const Kernels* const* available_kernels();

// The table in use: the best one this processor runs, unless EMBITS_SIMD or use_kernels names
// another. Throws std::invalid_argument when EMBITS_SIMD names one that cannot run here.
const Kernels& kernels();

// Makes `name` the table in use; throws std::invalid_argument when it cannot run here.
void use_kernels(const char* name);

}  // namespace embits
