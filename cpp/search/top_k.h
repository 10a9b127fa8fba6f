#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/cells.h"
#include "search/code_rows.h"
#include "search/filter.h"

namespace embits {

// For each query the k nearest rows by Hamming distance, nearest first, ties in row order.
// Needs k <= n, or as many rows as the filter lets through; a query with a filter of its own may
// have fewer, and the rest of its answer is not written. `threads` is the most to use, 0 for every
// core; the answer does not depend on it. With `cells`, only some of the cells are read.
void top_k(CodeRows codes, size_t n, size_t width, const uint8_t* queries, size_t n_queries,
           size_t k, unsigned threads, int32_t* out_distances, int64_t* out_rows,
           const Filter& filter = {}, const CellReading* cells = nullptr);

// The keys of query q are [offsets[q], offsets[q + 1]), nearest first, ties in row order; a key is
// distance << kRowBits | row.
struct RowsWithin {
    std::vector<int64_t> offsets, keys;
};

// For each query all rows at `distance` or nearer. Throws std::overflow_error when there are more
// than `max_found` in all. A filter may have one mask for all queries.
RowsWithin within(CodeRows codes, size_t n, size_t width, const uint8_t* queries,
                  size_t n_queries, uint32_t distance, size_t max_found, unsigned threads,
                  const Filter& filter = {});

}  // namespace embits
