#include "search/float_query.h"

#include <limits>

namespace embits {
namespace {

template <size_t Bits>
uint32_t rounded(float z, double step) {
    constexpr uint32_t kMaxWeight = (1u << Bits) - 1;
    return static_cast<uint32_t>(std::min(std::fabs(double{z}) / step + 0.5, kMaxWeight + 0.5));
}

}  // namespace

FloatQuery::FloatQuery(const float* z, size_t n_bits, size_t width, bool by_planes)
    : width_(width), code_(width), tables_(32 * width) {
    choose_step(z, n_bits);
    for (size_t i = 0; i < n_bits; ++i) {
        if (z[i] > 0) code_[i / 8] |= static_cast<uint8_t>(0x80 >> i % 8);
        norm_ += std::fabs(double{z[i]});
    }
    overshoot_ = set_weights<kWeightBits>(z, n_bits, step_, weights_);
    for (size_t i = 0; i < n_bits; ++i)
        for (size_t four = 0; four < 16; ++four)
            tables_[i / 4 * 16 + four] += four & (8 >> i % 4) ? double{z[i]} : -double{z[i]};
    if (!by_planes) return;
    ranked_ = std::make_shared<const RankedBits>(z, n_bits, width);
    fine_overshoot_ = set_weights<kFineBits>(z, n_bits, step_ / kFiner, fine_weights_);
}

// Fills the rows of `weights`; returns the overshoot.
template <size_t Bits>
double FloatQuery::set_weights(const float* z, size_t n_bits, double step,
                               std::vector<uint8_t>& weights) {
    weights.assign(Bits * width_, 0);
    double overshoot = 0;
    for (size_t i = 0; i < n_bits; ++i) {
        const uint32_t weight = rounded<Bits>(z[i], step);
        for (size_t p = 0; p < Bits; ++p)
            weights[p * width_ + i / 8] |= static_cast<uint8_t>(
                (weight >> (Bits - 1 - p) & 1) << (7 - i % 8));
        overshoot += std::max(0.0, weight * step - std::fabs(double{z[i]}));
    }
    return overshoot;
}

double FloatQuery::score(const uint8_t* code) const {
    const double* table = tables_.data();
    double sum = 0;
    for (size_t i = 0; i < width_; ++i, table += 32)
        sum = (sum + table[code[i] >> 4]) + table[16 + (code[i] & 15)];
    return sum;
}

// The step that rounds with the least total error: a few large weights are better cut off.
void FloatQuery::choose_step(const float* z, size_t n_bits) {
    double largest = 0;
    for (size_t i = 0; i < n_bits; ++i) largest = std::max(largest, std::fabs(double{z[i]}));
    if (largest == 0) return;
    double least = std::numeric_limits<double>::infinity();
    for (double share : {1.0, 0.85, 0.7, 0.55}) {
        const double step = share * largest / ((1u << kWeightBits) - 1);
        double error = 0;
        for (size_t i = 0; i < n_bits; ++i)
            error += std::fabs(std::fabs(double{z[i]}) - step * rounded<kWeightBits>(z[i], step));
        if (error < least) {
            least = error;
            step_ = step;
        }
    }
}

}  // namespace embits
