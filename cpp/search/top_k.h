#pragma once
#include <cstddef>
#include <cstdint>

#include "search/filter.h"

namespace embits {

// For each query the k nearest rows by Hamming distance, nearest first, ties in row order.
// Needs k <= n, or as many rows as the filter lets through; a query with a filter of its own may
// have fewer, and the rest of its answer is not written. `threads` is the most to use, 0 for every
// core; the answer does not depend on it.
void top_k(const uint8_t* codes, size_t n, size_t width, const uint8_t* queries, size_t n_queries,
           size_t k, unsigned threads, int32_t* out_distances, int64_t* out_rows,
           const Filter& filter = {});

}  // namespace embits
