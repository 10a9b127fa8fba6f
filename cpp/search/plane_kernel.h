// The plane kernels, written once for every vector type; planes.h explains them.
//
// A kernel file defines its vector as a struct `Vector` with
//   Type, kBytes              the vector, its size
//   kColumns, kLanes          bytes of a lane that zip_low and zip_high work in, lanes of a vector
//   kMinQueries               see PlaneKernel
//   kUnrolled                 whether the usual widths get code of their own, 10 KB or so
//   gather(at, stride)        kColumns bytes from each of kLanes addresses, stride bytes apart
//   load, store, all(bits)    `all` repeats 32 bits
//   shift_left<S>, shift_right<S>   by S < 8 bits; what crosses a byte is masked afterwards
//   invert, bit_and, bit_xor, xor_and(a, b, m) = (a ^ b) & m
//   majority, full_add(sum, x, y)   adds x and y to sum, returns the carry
//   zip_low, zip_high         interleave the bytes of the low or high halves of the lanes
//   full(x)                   whether all bits are set
// and takes the address of PlaneFunctions<Vector>'s members. Everything is in an anonymous
// namespace, for the reason given in words.h.
#pragma once
#include <cstring>

#include "search/planes.h"
#include "search/words.h"

#if defined(_MSC_VER)
#define EMBITS_INLINE __forceinline
#else
#define EMBITS_INLINE inline __attribute__((always_inline))
#endif

namespace embits {
namespace {

// ---- Transposition

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

// ---- The tree of adders

// The carry of weight 2^Level out of the look-ups from At on. The sums of the lower levels stay
// in `sums`; the first adder of a level gives its sum the start value.
template <class Vector, unsigned Level, size_t At, bool Start>
struct Adders {
    using V = typename Vector::Type;
    static EMBITS_INLINE V carry(const uint8_t* table, const uint8_t* looked_up,
                                 const uint32_t* start, V* sums) {
        using First = Adders<Vector, Level - 1, At, Start>;
        using Second = Adders<Vector, Level - 1, At + (size_t{1} << (Level - 2)), Start>;
        const V x = First::carry(table, looked_up, start, sums);
        const V y = Second::carry(table, looked_up, start, sums);
        if (Start && At == 0) sums[Level - 1] = Vector::all(start[Level - 1]);
        return Vector::full_add(sums[Level - 1], x, y);
    }
};
template <class Vector, size_t At, bool Start>
struct Adders<Vector, 1, At, Start> {
    using V = typename Vector::Type;
    static EMBITS_INLINE V carry(const uint8_t* table, const uint8_t* looked_up, const uint32_t*,
                                 V*) {
        return Vector::load(table + 8 * At * Vector::kBytes + 8 * size_t{looked_up[At]});
    }
};

inline const uint32_t* start_of_record(const uint8_t* record, const PlaneShape& shape) {
    return reinterpret_cast<const uint32_t*>(record + shape.planes / 2);
}

// 2^Levels planes: one tree without loops.
template <class Vector, unsigned Levels>
struct TreeScan {
    using V = typename Vector::Type;
    static EMBITS_INLINE V at_limit(const uint8_t* table, const PlaneShape& shape,
                                    const uint8_t* record) {
        V sums[Levels];
        return Adders<Vector, Levels, 0, true>::carry(table, record,
                                                      start_of_record(record, shape), sums);
    }
};

// Any number of planes: a tree for each unit, whose carries are added one by one.
template <class Vector>
struct LoopScan {
    using V = typename Vector::Type;
    static EMBITS_INLINE V at_limit(const uint8_t* table, const PlaneShape& shape,
                                    const uint8_t* record) {
        constexpr unsigned kUnitLevels = 6, kMaxLevels = 16;
        const uint32_t* start = start_of_record(record, shape);
        V sums[kMaxLevels];
        for (unsigned level = 1; level < shape.levels; ++level)
            sums[level] = Vector::all(start[level]);
        V out = Vector::all(0);
        for (size_t unit = 0; unit < shape.planes; unit += kUnit) {
            V carry = Adders<Vector, kUnitLevels, 0, false>::carry(
                table + 4 * unit * Vector::kBytes, record + unit / 2, start, sums);
            for (unsigned level = kUnitLevels; level < shape.levels; ++level) {
                const V next = Vector::bit_and(sums[level], carry);
                sums[level] = Vector::bit_xor(sums[level], carry);
                carry = next;
            }
            out = Vector::bit_xor(out, carry);  // a row has at most one
        }
        return out;
    }
};

template <class Vector, class Scan>
size_t next_below(const uint8_t* table, const PlaneShape& shape, const uint8_t* records,
                  size_t first, size_t count, uint64_t* mask) {
    for (size_t q = first; q < count; ++q) {
        const auto at_limit = Scan::at_limit(table, shape, records + q * shape.record);
        if (Vector::full(at_limit)) continue;
        Vector::store(reinterpret_cast<uint8_t*>(mask), Vector::invert(at_limit));
        return q;
    }
    return count;
}

// ---- The functions of a PlaneKernel

// Up to 16 bytes. A call to memcpy with a length the compiler does not know takes longer.
inline void copy_columns(const uint8_t* from, size_t count, uint8_t* to) {
    for (size_t i = 0; i < count; i += 8) {
        const uint64_t word = word_at(from + i, count - i);
        std::memcpy(to + i, &word, 8);
    }
}

template <class Vector>
struct PlaneFunctions {
    using V = typename Vector::Type;
    static constexpr size_t kRows = 8 * Vector::kBytes;

    static void transpose(const uint8_t* codes, const PlaneShape& shape, uint8_t* planes) {
        constexpr size_t columns = Vector::kColumns;
        for (size_t at = 0; at < shape.planes / 8; at += columns) {
            uint8_t* to = planes + 8 * at * Vector::kBytes;
            const size_t left = at < shape.width ? shape.width - at : 0;
            if (left >= columns) {
                transpose_columns<Vector>(codes + at, shape.width, to);
            } else if (left) {
                uint8_t padded[kRows * columns] = {};
                for (size_t row = 0; row < kRows; ++row)
                    copy_columns(codes + row * shape.width + at, left, padded + row * columns);
                transpose_columns<Vector>(padded, columns, to);
            } else {
                std::memset(to, 0, 8 * columns * Vector::kBytes);
            }
        }
    }

    static void tabulate(const uint8_t* planes, const PlaneShape& shape, uint8_t* table) {
        V parity = Vector::load(planes);
        for (size_t i = 1; i < shape.planes; i += 2) {
            const V a = parity, b = Vector::load(planes + i * Vector::kBytes);
            const V c = i + 1 < shape.planes ? Vector::load(planes + (i + 1) * Vector::kBytes)
                                             : Vector::all(0);
            V carries[8];
            carries[0] = Vector::majority(a, b, c);
            carries[1] = Vector::majority(Vector::invert(a), b, c);
            carries[2] = Vector::majority(a, Vector::invert(b), c);
            carries[4] = Vector::majority(a, b, Vector::invert(c));
            // With all three inputs inverted, the carry is inverted.
            carries[3] = Vector::invert(carries[4]);
            carries[5] = Vector::invert(carries[2]);
            carries[6] = Vector::invert(carries[1]);
            carries[7] = Vector::invert(carries[0]);
            for (size_t pattern = 0; pattern < 8; ++pattern, table += Vector::kBytes)
                Vector::store(table, carries[pattern]);
            parity = Vector::bit_xor(a, Vector::bit_xor(b, c));
        }
    }

    static size_t next(const uint8_t* table, const PlaneShape& shape, const uint8_t* records,
                       size_t first, size_t count, uint64_t* mask) {
        const auto with = [&](auto scan) {
            return next_below<Vector, decltype(scan)>(table, shape, records, first, count, mask);
        };
        if constexpr (Vector::kUnrolled) {
            switch (shape.planes) {
                case 64: return with(TreeScan<Vector, 6>{});
                case 128: return with(TreeScan<Vector, 7>{});
                case 256: return with(TreeScan<Vector, 8>{});
                case 512: return with(TreeScan<Vector, 9>{});
            }
        }
        return with(LoopScan<Vector>{});
    }

    static constexpr PlaneKernel kernel() {
        return {kRows, Vector::kMinQueries, transpose, tabulate, next};
    }
};

}  // namespace
}  // namespace embits
