// Codes chosen by search: a threshold gives a first code, and single bits are flipped while an
// error falls. All sums are sums of integers, so a code is the same on every processor, in every
// block of rows and for any number of threads.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

// Rows of int16 are padded with zeros to a multiple of this.
constexpr size_t kLane = 32;
constexpr size_t padded(size_t n) { return (n + kLane - 1) / kLane * kLane; }

// The weights, in the units of coders/near_lossless/encoder.py. With y = Db + o, b in {-1, 1}, a
// code makes |y|^2 - 2 (scores + Do) b + pull (|y|^2 - length)^2 small.
struct SearchedWeights {
    size_t dims, bits;
    const int16_t* weights;     // bits rows of padded(dims)
    const int32_t* thresholds;  // bits: a score is (weights x + half) >> shift, less its threshold
    const int16_t* gram;        // bits rows of padded(bits): D D^T
    const int32_t* centre;      // bits: D o
    unsigned shift;
    int32_t offset;             // |o|^2
    int32_t length;             // the |y|^2 that codes are drawn to ...
    float pull;                 // ... and how strongly
    unsigned sweeps;            // passes over the bits, at most
};

// Packed codes of n vectors of `dims` floats, first bit highest, (bits + 7) / 8 bytes a row.
void encode_searched(const SearchedWeights& coder, const float* vectors, size_t n,
                     unsigned threads, uint8_t* codes);

}  // namespace embits
