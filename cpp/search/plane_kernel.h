// The plane kernels, written once for every vector type; planes.h explains them.
//
// A kernel file defines its vector as a struct `Vector` with
//   Type, kBytes              the vector, its size
//   kColumns, kLanes          bytes of a lane that zip_low and zip_high work in, lanes of a vector
//   kMinQueries, kMinWeighted see PlaneKernel
//   kUnrolled                 whether the usual widths have longer trees of their own
//   gather(at, stride)        kColumns bytes from each of kLanes addresses, stride bytes apart
//   load, store, all(bits)    `all` repeats 32 bits
//   shift_left<S>, shift_right<S>   by S < 8 bits; what crosses a byte is masked afterwards
//   invert, bit_and, bit_xor, xor_and(a, b, m) = (a ^ b) & m
//   majority, full_add(sum, x, y)   adds x and y to sum, returns the carry
//   zip_low, zip_high         interleave the bytes of the low or high halves of the lanes
//   full(x)                   whether all bits are set
//   FineDistance              of {query, width}: the weighted distance of one row
// and takes the address of PlaneFunctions<Vector>'s members. Everything is in an anonymous
// namespace, for the reason given in words.h.
#pragma once
#include "search/plane_transpose.h"
#include "search/planes.h"

namespace embits {
namespace {

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
    return reinterpret_cast<const uint32_t*>(record + shape.start);
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
template <class Vector, class Unit>
struct LoopScan {
    using V = typename Vector::Type;
    static EMBITS_INLINE V at_limit(const uint8_t* vectors, const PlaneShape& shape,
                                    const uint8_t* record) {
        constexpr unsigned kMaxAbove = 8;
        const uint32_t* start = start_of_record(record, shape);
        const unsigned n_above = shape.levels - Unit::kLevels;
        V sums[Unit::kLevels], above[kMaxAbove];  // `sums` stay in registers
        for (unsigned level = 0; level < Unit::kLevels; ++level)
            sums[level] = Vector::all(start[level]);
        for (unsigned i = 0; i < n_above; ++i) above[i] = Vector::all(start[Unit::kLevels + i]);
        V out = Vector::all(0);
        for (size_t unit = 0; unit < shape.planes / Unit::kPlanes; ++unit) {
            V carry = Unit::carry(vectors, record, unit, sums);
            for (unsigned i = 0; i < n_above; ++i) {
                const V next = Vector::bit_and(above[i], carry);
                above[i] = Vector::bit_xor(above[i], carry);
                carry = next;
            }
            out = Vector::bit_xor(out, carry);  // a row has at most one
        }
        return out;
    }
};

template <class Vector, unsigned Levels>
struct HammingUnit {
    static constexpr unsigned kLevels = Levels;
    static constexpr size_t kPlanes = size_t{1} << Levels;
    static EMBITS_INLINE typename Vector::Type carry(const uint8_t* table, const uint8_t* record,
                                                     size_t unit, typename Vector::Type* sums) {
        return Adders<Vector, kLevels, 0, false>::carry(
            table + 4 * unit * kPlanes * Vector::kBytes, record + unit * kPlanes / 2, nullptr, sums);
    }
};

// ---- Weighted distances

// Which of a unit's weights have each bit.
struct WeightInputs {
    size_t count[kWeightLevels] = {};
    uint8_t rank[kWeightLevels][kWeighted] = {};

    constexpr WeightInputs() {
        for (size_t r = 0; r < kWeighted; ++r)
            for (unsigned level = 0; level < kWeightLevels; ++level)
                if (kRankWeights[r] >> level & 1)
                    rank[level][count[level]++] = static_cast<uint8_t>(r);
    }
};
constexpr WeightInputs kWeightInputs;

// Input number I of the adders of a level: the planes of that weight come first, then the carries
// from the level below.
template <class Vector, unsigned Level, size_t I>
EMBITS_INLINE typename Vector::Type weighted_input(const uint8_t* pairs, const uint16_t* places,
                                                   typename Vector::Type* sums) {
    constexpr size_t count = Level < kWeightLevels ? kWeightInputs.count[Level % kWeightLevels] : 0;
    if constexpr (I < count) {
        return Vector::load(pairs + 8 * size_t{places[kWeightInputs.rank[Level][I]]});
    } else {
        constexpr size_t first = 2 * (I - count);
        const auto x = weighted_input<Vector, Level - 1, first>(pairs, places, sums);
        const auto y = weighted_input<Vector, Level - 1, first + 1>(pairs, places, sums);
        return Vector::full_add(sums[Level - 1], x, y);
    }
}

template <class Vector>
struct WeightedUnit {
    static constexpr unsigned kLevels = kWeightLevels;
    static constexpr size_t kPlanes = kUnit;
    static EMBITS_INLINE typename Vector::Type carry(const uint8_t* pairs, const uint8_t* record,
                                                     size_t unit, typename Vector::Type* sums) {
        const uint16_t* places = reinterpret_cast<const uint16_t*>(record) + unit * kWeighted;
        return weighted_input<Vector, kLevels, 0>(pairs, places, sums);
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

template <class Vector>
struct PlaneFunctions {
    using V = typename Vector::Type;
    static constexpr size_t kRows = 8 * Vector::kBytes;

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
            if (shape.planes == 64) return with(TreeScan<Vector, 6>{});
            if (shape.planes == 128) return with(TreeScan<Vector, 7>{});
            if (shape.planes % 256 == 0) return with(LoopScan<Vector, HammingUnit<Vector, 8>>{});
        }
        return with(LoopScan<Vector, HammingUnit<Vector, 6>>{});
    }

    static void pair(const uint8_t* planes, const PlaneShape& shape, uint8_t* pairs) {
        for (size_t i = 0; i < shape.planes; ++i, pairs += 2 * Vector::kBytes) {
            const V plane = Vector::load(planes + i * Vector::kBytes);
            Vector::store(pairs, plane);
            Vector::store(pairs + Vector::kBytes, Vector::invert(plane));
        }
        Vector::store(pairs, Vector::all(0));
    }

    static size_t next_weighted(const WeightedBlock& block, const PlaneShape& shape, size_t first,
                                size_t count, Hit* hits, size_t* found) {
        using Scan = LoopScan<Vector, WeightedUnit<Vector>>;
        for (size_t q = first; q < count; ++q) {
            const V at_limit = Scan::at_limit(block.pairs, shape, block.records + q * shape.record);
            if (Vector::full(at_limit)) continue;
            *found = weigh_rows(at_limit, block, shape.width, block.queries[q], hits);
            if (*found) return q;
        }
        return count;
    }

    static size_t weigh_rows(V at_limit, const WeightedBlock& block, size_t width,
                             const FineQuery& query, Hit* hits) {
        uint64_t mask[kRows / 64];
        Vector::store(reinterpret_cast<uint8_t*>(mask), Vector::invert(at_limit));
        const typename Vector::FineDistance distance_of{query.query, width};
        size_t found = 0;
        for (size_t word = 0; word < kRows / 64; ++word)
            for (uint64_t left = mask[word] & (block.allowed ? block.allowed[word] : ~uint64_t{0});
                 left; left &= left - 1) {
                const size_t row = 64 * word + lowest_bit(left);
                const uint32_t distance = distance_of(block.codes + row * width);
                if (distance < query.limit) hits[found++] = {static_cast<uint32_t>(row), distance};
            }
        return found;
    }

    static constexpr PlaneKernel kernel() {
        return {kRows,    Vector::kMinQueries, Vector::kMinWeighted, transpose<Vector>,
                tabulate, next,                pair,                 next_weighted};
    }
};

}  // namespace
}  // namespace embits
