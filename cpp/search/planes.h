// Batches of queries by bit planes.
//
// A block of rows is transposed: bit r of plane j is bit j of row r. One vector instruction then
// handles one bit of every row of the block. The distances of all rows to one query are sums of
// one-bit numbers, plane j XOR bit j of the query, and full adders add them up.
//
// 1. The first layer of adders takes the planes in threes: (x0, x1, x2), (p, x3, x4), (p, x5, x6),
//    ..., where p is the parity of all planes before. The carry of such a triple has weight 2. It
//    depends on only three bits of the query, so its eight possible values are tabulated once a
//    block, and a query looks up one carry for every two planes. The looked-up parities would
//    only give the last bit of the distance, which is not needed.
// 2. A tree of full adders adds the carries: one adder for each carry.
// 3. The sums start from 2^levels - limit instead of zero. The carry out of the highest level is
//    then the mask of the rows whose distance is at least `limit`, without a comparison. The
//    lowest bit of the start value is the third input of the last triple.
//
// Nearly all masks are full once a query has found its first neighbors. The few rows that are
// left get their distance from the row-major code. To transpose a block and fill its tables takes
// as long as some dozens of queries, so small batches use the row-major kernels.
//
//   planes          table of the block           a query
//   x0 x1 x2   ->   8 carries (of 3 bits)   ->   picks 1
//   p  x3 x4   ->   8 carries               ->   picks 1     -> adders -> mask of rows
//   p  x5 x6   ->   8 carries               ->   picks 1
//
// Float queries weigh the bits. A table cannot help them, but the adders can: a bit of weight 2^i
// enters at level i. The weights depend on the order of the bits by size: of 64 bits so ordered,
// kRankWeights[r] is the weight of number r. So the adders are the same for every query and have
// no branches, and a query is only a list of planes. A block keeps each plane and its complement;
// the query's sign picks one of them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

// Planes are added in units of this many; a code's last unit is filled up with zeros.
constexpr size_t kUnit = 64;

// A row that a scan let through; `row` counts from the first row scanned.
struct Hit {
    uint32_t row;
    uint32_t distance;
};

// A query whose bits have weights: bit i weighs the number whose binary digits, most significant
// first, are bit i of each row of `weights`.
constexpr size_t kWeightBits = 4;  // for scans
constexpr size_t kFineBits = 7;    // for the rows that planes let through
struct WeightedQuery {
    const uint8_t* code;     // `width` bytes
    const uint8_t* weights;  // kWeightBits or kFineBits rows of `width` bytes
};

// The weights of a unit, those above zero. They follow the half-normal distribution in powers of
// two, so each bit enters one adder, and add up to 2^kWeightLevels, so the tree of adders has no
// loose ends. More exact weights let fewer rows through but take more adders: on codes of word
// vectors they are slower, on codes of 64 random bits faster.
constexpr unsigned kWeightLevels = 6;
constexpr size_t kWeighted = 42, kUnweighted = kUnit - kWeighted;
constexpr uint8_t kRankWeights[kWeighted] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4,
};

// How codes of one width are laid out in planes. See plane_shape in plane_queries.h.
struct PlaneShape {
    size_t width;     // bytes of a code
    size_t planes;    // a multiple of kUnit
    unsigned levels;  // 2^levels >= planes
    size_t record;    // bytes of a query's record
    size_t start;     // where in it the bits of the start value are
};

// A query's record has at `start` `levels` words of 32 bits, all ones where that bit of the start
// value is set. Before them are
//   Hamming distance: planes / 2 look-ups of one byte, each the pattern of three query bits
//   weighted distance: kWeighted numbers of 16 bits for each unit, the places of planes among the
//     pairs
// both multiplied by the size of a vector in 64-bit words.
struct FineQuery {
    WeightedQuery query;  // kFineBits weights
    uint32_t limit;
};
struct WeightedBlock {
    const uint8_t* codes;
    const uint8_t* pairs;
    const uint8_t* records;
    const FineQuery* queries;
    const uint64_t* allowed;  // a bit for each row that may be a hit, or null
};

struct PlaneKernel {
    size_t rows;          // of a block: the bits of a vector
    size_t min_queries;   // from this many on, planes are faster than the row-major kernel
    size_t min_weighted;  // the same for weighted distances

    // Transposes `rows` codes into planes[0 .. planes), vectors of rows / 8 bytes. Writes whole
    // groups of 128 planes.
    void (*transpose)(const uint8_t* codes, const PlaneShape& shape, uint8_t* planes);

    // Fills the table, 4 * planes vectors.
    void (*tabulate)(const uint8_t* planes, const PlaneShape& shape, uint8_t* table);

    // The first query in [first, count) that has rows below its limit, or `count`. `mask` gets
    // one bit for each of the block's rows, set where the distance is below the limit.
    size_t (*next)(const uint8_t* table, const PlaneShape& shape, const uint8_t* records,
                   size_t first, size_t count, uint64_t* mask);

    // Writes each plane and its complement, then a vector of zeros: 2 * planes + 1 vectors.
    void (*pair)(const uint8_t* planes, const PlaneShape& shape, uint8_t* pairs);

    // The first query in [first, count) that has hits in the block, or `count`. The planes have
    // coarse weights: the rows that they let through are weighed again by fine ones, and those
    // below the fine limit are hits, with fine distances. `hits` has room for all rows.
    size_t (*next_weighted)(const WeightedBlock& block, const PlaneShape& shape, size_t first,
                            size_t count, Hit* hits, size_t* found);
};

}  // namespace embits
