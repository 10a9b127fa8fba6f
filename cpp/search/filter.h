// Which rows a search may return.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "parallel.h"

namespace embits {

// A filter has rows, for a few, or a mask, for many; one with neither lets all rows through.
struct Filter {
    // Places of rows among the stored codes, ascending, each once. Their codes are copied block by
    // block and scanned alone: row i of the scan is row rows[i] of the codes.
    const int64_t* rows = nullptr;
    size_t count = 0;  // how many rows pass; of several masks, the fewest
    // Where the rows of each query start, and the end of the last one's; null if all share them.
    const int64_t* starts = nullptr;
    // A bit for each row of the codes, by its number, the lowest bit of a word first. All rows are
    // scanned, and those that would be kept are looked up.
    const uint64_t* mask = nullptr;
    // The addresses of masks, one for each query; null if all share one.
    const uint64_t* masks = nullptr;

    const uint64_t* mask_of(size_t q) const {
        return masks ? reinterpret_cast<const uint64_t*>(static_cast<uintptr_t>(masks[q])) : mask;
    }

    // The rows to scan, of n.
    size_t scanned(size_t n) const { return rows ? count : n; }
    // The rows that can be found, of n.
    size_t allowed(size_t n) const { return rows || mask || masks ? count : n; }

    // Makes row numbers of the codes from those of the scan.
    void number(int64_t* found, size_t k) const {
        if (rows)
            for (size_t i = 0; i < k; ++i) found[i] = rows[found[i]];
    }
};

inline bool allows(const uint64_t* mask, size_t row) {
    return !mask || (mask[row / 64] >> row % 64 & 1);
}

// Whether any of the rows [row, row + size) passes; size >= 1.
bool allows_any(const uint64_t* mask, size_t row, size_t size);

// Writes the bits of rows [row, row + 64 * n), all of which the mask has.
void copy_mask(const uint64_t* mask, size_t row, size_t n, uint64_t* to);

// Copies the codes of rows[0] ... rows[size - 1] to `to`, where `codes` starts with row `first`;
// `left` row numbers can be read.
void gather(const uint8_t* codes, int64_t first, size_t width, const int64_t* rows, size_t size,
            size_t left, uint8_t* to);

// Writes the rows of a mask of n words, ascending; `rows` has room for one more than there are.
void mask_rows(const uint64_t* mask, size_t n, int64_t* rows);

// A row that is gathered takes as long as this many that are scanned in order (measured).
constexpr size_t kGatherCost = 4;

// Calls one(q, filter of query q) for each query with rows of its own.
template <class SearchOne>
void search_each(const Filter& filter, size_t width, size_t n_queries, unsigned threads,
                 const SearchOne& one) {
    constexpr size_t kBytes = 8 << 20;  // as in blocked_scan.h
    const size_t work = static_cast<size_t>(filter.starts[n_queries]) * width * kGatherCost;
    run_parts(worthwhile_threads(threads, work, kBytes), static_cast<unsigned>(n_queries),
              [&](unsigned q) {
                  Filter own;
                  own.rows = filter.rows + filter.starts[q];
                  own.count = static_cast<size_t>(filter.starts[q + 1] - filter.starts[q]);
                  one(q, own);
              });
}

}  // namespace embits
