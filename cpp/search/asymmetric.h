#pragma once
#include <cstddef>
#include <cstdint>

#include "search/cells.h"
#include "search/code_rows.h"
#include "search/filter.h"

namespace embits {

// The lengths of rows, for scores that are inner products; null if scores ignore them.
struct RowLengths {
    const float* of_rows = nullptr;  // a finite number of 0 or more for each stored code
    const float* offsets = nullptr;  // what is added to the sum of the bits, for each query

    RowLengths of_query(size_t q) const {
        return of_rows ? RowLengths{of_rows, offsets + q} : RowLengths{};
    }
};

// For each query z the k rows b of highest score <z, 2b - 1>, best first, ties in row order.
// `queries` are n_queries rows of n_bits finite floats, 8 * (width - 1) < n_bits <= 8 * width.
// A score is added up in float64, in one order, whatever the kernel and the number of threads.
// `filter` and `cells` are as in top_k. With lengths, the score is length of b * (<z, 2b - 1> + offset of z).
void asymmetric_top_k(CodeRows codes, size_t n, size_t width, const float* queries,
                      size_t n_queries, size_t n_bits, size_t k, unsigned threads, float* scores,
                      int64_t* rows, const Filter& filter = {}, RowLengths lengths = {},
                      const CellReading* cells = nullptr);

}  // namespace embits
