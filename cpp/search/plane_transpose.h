// From rows of codes to bit planes, for every vector type; plane_kernel.h says what a Vector has.
//
// Bits are transposed within groups of 8 x 8, then bytes within the lanes of the vectors.
#pragma once
#include <cstring>

#include "search/planes.h"
#include "search/words.h"

namespace embits {
namespace {

// Swaps the bits of weight S in the bytes of `a` with those beside them in the bytes of `b`.
template <class Vector, int S>
EMBITS_INLINE void swap_bits(typename Vector::Type& a, typename Vector::Type& b,
                             typename Vector::Type mask) {
    const auto swapped = Vector::xor_and(Vector::template shift_right<S>(a), b, mask);
    b = Vector::bit_xor(b, swapped);
    a = Vector::bit_xor(a, Vector::template shift_left<S>(swapped));
}

// Transposes the 8 x 8 bits at every byte position of eight vectors.
template <class Vector>
EMBITS_INLINE void transpose_bits(typename Vector::Type (&v)[8]) {
    const auto four = Vector::all(0x0f0f0f0f), two = Vector::all(0x33333333),
               one = Vector::all(0x55555555);
    for (size_t i = 0; i < 4; ++i) swap_bits<Vector, 4>(v[i], v[i + 4], four);
    for (size_t i = 0; i < 4; ++i) swap_bits<Vector, 2>(v[i + (i & 2)], v[i + (i & 2) + 2], two);
    for (size_t i = 0; i < 8; i += 2) swap_bits<Vector, 1>(v[i], v[i + 1], one);
}

// Transposes the kColumns x kColumns bytes of every lane.
template <class Vector>
EMBITS_INLINE void transpose_bytes(typename Vector::Type (&v)[Vector::kColumns]) {
    constexpr size_t half = Vector::kColumns / 2;
    for (size_t step = 1; step < Vector::kColumns; step *= 2) {
        typename Vector::Type zipped[Vector::kColumns];
        for (size_t i = 0; i < half; ++i) {
            zipped[2 * i] = Vector::zip_low(v[i], v[i + half]);
            zipped[2 * i + 1] = Vector::zip_high(v[i], v[i + half]);
        }
        for (size_t i = 0; i < Vector::kColumns; ++i) v[i] = zipped[i];
    }
}

// kColumns bytes of every row, `stride` bytes apart, into 8 * kColumns planes.
template <class Vector>
void transpose_columns(const uint8_t* codes, size_t stride, uint8_t* planes) {
    using V = typename Vector::Type;
    constexpr size_t columns = Vector::kColumns;
    V bits[8][columns];
    for (size_t set = 0; set < columns; ++set) {
        V v[8];
        for (size_t i = 0; i < 8; ++i)
            v[i] = Vector::gather(codes + (8 * set + i) * stride, 8 * columns * stride);
        transpose_bits<Vector>(v);
        for (size_t i = 0; i < 8; ++i) bits[i][set] = v[i];
    }
    for (size_t i = 0; i < 8; ++i) {
        transpose_bytes<Vector>(bits[i]);
        for (size_t column = 0; column < columns; ++column)
            Vector::store(planes + (8 * column + i) * Vector::kBytes, bits[i][column]);
    }
}

// `count` bytes, then zeros up to `columns`. A call to memcpy with a length the compiler does not
// know takes longer.
inline void copy_columns(const uint8_t* from, size_t count, size_t columns, uint8_t* to) {
    for (size_t i = 0; i < columns; i += 8) {
        const uint64_t word = i < count ? word_at(from + i, count - i) : 0;
        std::memcpy(to + i, &word, 8);
    }
}

template <class Vector>
void transpose(const uint8_t* codes, const PlaneShape& shape, uint8_t* planes) {
    constexpr size_t columns = Vector::kColumns, rows = 8 * Vector::kBytes;
    uint8_t padded[rows * columns];  // the last columns of a code, filled up with zeros
    for (size_t at = 0; at < shape.planes / 8; at += columns) {
        uint8_t* to = planes + 8 * at * Vector::kBytes;
        if (at >= shape.width) {
            std::memset(to, 0, 8 * columns * Vector::kBytes);
            continue;
        }
        const size_t left = shape.width - at;
        const uint8_t* from = codes + at;
        size_t stride = shape.width;
        if (left < columns) {
            for (size_t row = 0; row < rows; ++row)
                copy_columns(from + row * stride, left, columns, padded + row * columns);
            from = padded;
            stride = columns;
        }
        transpose_columns<Vector>(from, stride, to);
    }
}

}  // namespace
}  // namespace embits
