// The queries of a batch as the plane kernels read them, and the block of rows they search.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/planes.h"

namespace embits {

// Codes of more bits would fill more than 1 MB with the tables of a block.
constexpr size_t kMaxPlanes = 2048;

PlaneShape plane_shape(size_t width);

class PlaneQueries {
   public:
    // `codes` are `count` queries of `width` bytes, at most kMaxPlanes bits.
    PlaneQueries(const PlaneKernel& kernel, size_t width, const uint8_t* codes, size_t count);

    size_t rows() const { return kernel_.rows; }

    // Rows at `limit` or beyond are passed over; a limit of 0 is taken as 1, and one above the
    // number of bits as that number.
    void set_limit(size_t q, uint32_t limit);

    // Makes the first rows() of n codes the block to search.
    void build(const uint8_t* codes, size_t n);

    // The first query from `first` on that has rows of the block below its limit, or the number
    // of queries.
    size_t next(size_t first) {
        return kernel_.next(table_, shape_, records_, first, count_, mask_);
    }

    // Calls take(row) for each of the block's rows that `next` found, in order.
    template <class Take>
    void for_each_row(const Take& take) const {
        for (size_t word = 0; word < kernel_.rows / 64; ++word)
            for (uint64_t left = mask_[word]; left; left &= left - 1)
                take(64 * word + lowest_bit(left));
    }

   private:
    static size_t lowest_bit(uint64_t x);
    void set_code(size_t q, const uint8_t* code);

    const PlaneKernel& kernel_;
    PlaneShape shape_;
    size_t count_;
    std::vector<uint8_t> memory_;
    uint8_t *records_, *planes_, *table_;
    alignas(64) uint64_t mask_[8];
};

}  // namespace embits
