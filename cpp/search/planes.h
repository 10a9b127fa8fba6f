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
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

// Planes are added in units of this many; a code's last unit is filled up with zeros.
constexpr size_t kUnit = 64;

// How codes of one width are laid out in planes. See plane_shape in plane_queries.h.
struct PlaneShape {
    size_t width;     // bytes of a code
    size_t planes;    // a multiple of kUnit
    unsigned levels;  // 2^levels >= planes
    size_t record;    // bytes of a query's record
};

// A query's record: planes / 2 look-ups of one byte each, then from that offset on `levels` words
// of 32 bits, all ones where that bit of the start value is set. A look-up is the pattern of three
// query bits, times the size of a vector in 64-bit words.
struct PlaneKernel {
    size_t rows;         // of a block: the bits of a vector
    size_t min_queries;  // from this many on, planes are faster than the row-major kernel

    // Transposes `rows` codes into planes[0 .. planes), vectors of rows / 8 bytes. Writes whole
    // groups of 128 planes.
    void (*transpose)(const uint8_t* codes, const PlaneShape& shape, uint8_t* planes);

    // Fills the table, 4 * planes vectors.
    void (*tabulate)(const uint8_t* planes, const PlaneShape& shape, uint8_t* table);

    // The first query in [first, count) that has rows below its limit, or `count`. `mask` gets
    // one bit for each of the block's rows, set where the distance is below the limit.
    size_t (*next)(const uint8_t* table, const PlaneShape& shape, const uint8_t* records,
                   size_t first, size_t count, uint64_t* mask);
};

}  // namespace embits
