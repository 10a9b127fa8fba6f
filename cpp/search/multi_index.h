// Multi-index hashing (Norouzi, Punjani, Fleet 2012): exact top-k that visits few of the codes.
//
// A code is cut into m chunks, and each chunk has a table of the rows by its value. Two codes
// that differ in at most m * r + t bits agree up to r bits in one of the chunks 0..t, or up to
// r - 1 in one of the others; so visiting the tables' buckets in that order finds the nearest
// first, and once the k-th found is within the radius that has been covered, nothing is missing.
//
// Each table keeps a copy of the codes in bucket order: a bucket is scanned by the same kernels
// as everything else, which is many times faster than fetching its codes one by one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/filter.h"

namespace embits {

class MultiIndex {
   public:
    // `codes` stay the caller's and must outlive the index; n < 2^32, chunks of 1 to 24 bits.
    MultiIndex(const uint8_t* codes, size_t n, size_t width, unsigned n_chunks);

    // As embits::top_k, to the bit: a query that would visit too much is answered by a scan.
    // Returns how many queries were. The filter may have one mask for all queries, no rows.
    size_t top_k(const uint8_t* queries, size_t n_queries, size_t k, unsigned threads,
                 int32_t* distances, int64_t* rows, const Filter& filter = {}) const;

    size_t bytes() const;

   private:
    struct Chunk {
        unsigned first, bits;  // counted as np.packbits does, most significant first
        uint32_t of(const uint8_t* code) const;
    };
    struct Table {
        Chunk chunk;
        std::vector<uint32_t> starts;  // of each bucket; one more for the end of the last
        std::vector<uint32_t> rows;
        std::vector<uint8_t> codes;
    };
    class Probe;

    void fill(Table& table) const;
    bool probe(const uint8_t* query, size_t k, int32_t* distances, int64_t* rows,
               const uint64_t* mask) const;

    const uint8_t* codes_;
    size_t n_, width_;
    std::vector<Table> tables_;
};

}  // namespace embits
