// A float query as the kernels see it: whole weights for its bits, and exact scores.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "search/kernels.h"
#include "search/plane_queries.h"

namespace embits {

class FloatQuery {
   public:
    FloatQuery(const float* z, size_t n_bits, size_t width, bool by_planes);

    WeightedQuery weighted() const { return {code_.data(), weights_.data()}; }
    WeightedQuery fine() const { return {code_.data(), fine_weights_.data()}; }
    const RankedBits& ranked() const { return *ranked_; }

    double score(const uint8_t* code) const;

    // No row at this weighted distance or beyond scores more than `score`.
    uint32_t limit(double score) const { return limit(score, step_, overshoot_); }
    WeightedPlaneQueries::Limits plane_limits(double score) const {
        return {limit(score, ranked_->step, ranked_->overshoot),
                limit(score, step_ / kFiner, fine_overshoot_)};
    }

    // Whether every row may reach this score.
    bool is_lowest(double score) const { return score <= (kSlack - 1) * norm_; }

   private:
    static constexpr double kFiner = ((1u << kFineBits) - 1.0) / ((1u << kWeightBits) - 1.0);
    static constexpr double kSlack = 1e-9;  // far above what rounding adds to sums in float64

    uint32_t limit(double score, double step, double overshoot) const {
        const double distance = (norm_ - score) / 2 + overshoot + kSlack * norm_;
        return static_cast<uint32_t>(std::clamp(std::floor(distance / step) + 1, 0.0, 4e9));
    }
    void choose_step(const float* z, size_t n_bits);
    template <size_t Bits>
    double set_weights(const float* z, size_t n_bits, double step, std::vector<uint8_t>& weights);

    size_t width_;
    double step_ = 1;
    double norm_ = 0;       // sum |z|
    double overshoot_ = 0;  // by how much the weighted distance can exceed the true one
    double fine_overshoot_ = 0;
    std::vector<uint8_t> code_, weights_, fine_weights_;
    std::vector<double> tables_;
    std::shared_ptr<const RankedBits> ranked_;
};

}  // namespace embits
