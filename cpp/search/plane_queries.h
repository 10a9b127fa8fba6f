// The queries of a batch as the plane kernels read them, and the block of rows they search.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/planes.h"
#include "search/words.h"

namespace embits {

// Codes of more bits would fill more than 1 MB with the tables of a block.
constexpr size_t kMaxPlanes = 2048;

// What both kinds of queries have in common.
class PlaneBatch {
   public:
    PlaneBatch(const PlaneBatch&) = delete;
    PlaneBatch(PlaneBatch&&) = default;

    size_t rows() const { return kernel_.rows; }

    // Only these rows of the block may be found: a bit for each, or null for all.
    void allow(const uint64_t* rows) { allowed_ = rows; }

   protected:
    // A query takes `bytes` of its record before the start value; `vectors` are those that the
    // kernel reads for each block.
    PlaneBatch(const PlaneKernel& kernel, size_t width, size_t count, unsigned levels_of_unit,
               size_t bytes_of_unit, size_t vectors);

    size_t vector() const { return kernel_.rows / 8; }
    uint8_t* record(size_t q) { return records_ + q * shape_.record; }
    void transpose(const uint8_t* codes, size_t n);

    // Rows at `limit` or beyond are passed over. 0 is taken as 1, and a limit above the largest
    // distance that the adders hold as that distance.
    void set_limit(size_t q, uint32_t limit);

    const PlaneKernel& kernel_;
    PlaneShape shape_;
    size_t count_;
    uint8_t *records_, *planes_, *vectors_;
    const uint64_t* allowed_ = nullptr;

   private:
    std::vector<uint8_t> memory_;
};

// Queries by Hamming distance.
class PlaneQueries : public PlaneBatch {
   public:
    // `codes` are `count` queries of `width` bytes, at most kMaxPlanes bits.
    PlaneQueries(const PlaneKernel& kernel, size_t width, const uint8_t* codes, size_t count);

    // Rows at `limit` or beyond are passed over; it is taken as at least 1 and at most the number
    // of bits.
    void set_limit(size_t q, uint32_t limit);

    // Makes the first rows() of n codes the block to search.
    void build(const uint8_t* codes, size_t n);

    // The first query from `first` on that has rows of the block below its limit, or the number
    // of queries.
    size_t next(size_t first) {
        return kernel_.next(vectors_, shape_, records_, first, count_, mask_);
    }

    // Calls take(row) for each of the block's rows that `next` found, in order.
    template <class Take>
    void for_each_row(const Take& take) const {
        for (size_t word = 0; word < kernel_.rows / 64; ++word)
            for (uint64_t left = mask_[word] & (allowed_ ? allowed_[word] : ~uint64_t{0}); left;
                 left &= left - 1)
                take(64 * word + lowest_bit(left));
    }

   private:
    void set_code(size_t q, const uint8_t* code);

    uint64_t mask_[8];
};

// The bits of a float query in the order of their size, and the distance they add up to.
struct RankedBits {
    std::vector<uint16_t> places;  // kWeighted for each unit: 2 * plane + (1 if complemented)
    double step = 1;               // what a weight of 1 stands for
    double overshoot = 0;          // by how much the weighted distance can exceed the true one

    RankedBits(const float* z, size_t n_bits, size_t width);
};

// Queries by weighted distance.
class WeightedPlaneQueries : public PlaneBatch {
   public:
    WeightedPlaneQueries(const PlaneKernel& kernel, size_t width, size_t count);

    // `fine` has kFineBits weights and must outlive this object.
    void set_query(size_t q, const RankedBits& bits, WeightedQuery fine);

    struct Limits {
        uint32_t ranked, fine;
    };
    void set_limit(size_t q, Limits limits) {
        PlaneBatch::set_limit(q, limits.ranked);
        queries_[q].limit = limits.fine;
    }

    void build(const uint8_t* codes, size_t n);

    size_t next(size_t first) {
        const WeightedBlock block{codes_, vectors_, records_, queries_.data(), allowed_};
        return kernel_.next_weighted(block, shape_, first, count_, hits_.data(), &found_);
    }

    template <class Take>
    void for_each_row(const Take& take) const {
        for (size_t i = 0; i < found_; ++i) take(hits_[i].row);
    }

   private:
    std::vector<FineQuery> queries_;
    std::vector<Hit> hits_;
    size_t found_ = 0;
    const uint8_t* codes_ = nullptr;
};

}  // namespace embits
