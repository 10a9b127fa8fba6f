// A float query's bits by size. The order needs to be right only on the whole: every order gives
// a valid bound, and a better one a tighter bound. So the bits are put into buckets by size.
#include <algorithm>
#include <cmath>
#include <limits>

#include "search/plane_queries.h"

namespace embits {
namespace {

constexpr size_t kBuckets = 256;

std::vector<uint16_t> by_size(const float* z, size_t n_bits) {
    float largest = 0;
    for (size_t i = 0; i < n_bits; ++i) largest = std::max(largest, std::fabs(z[i]));
    const double scale = largest > 0 ? (kBuckets - 1) / static_cast<double>(largest) : 0;
    std::vector<uint8_t> bucket(n_bits);
    size_t starts[kBuckets + 1] = {};
    for (size_t i = 0; i < n_bits; ++i) {
        bucket[i] = static_cast<uint8_t>(std::fabs(z[i]) * scale);
        ++starts[bucket[i] + 1];
    }
    for (size_t b = 0; b < kBuckets; ++b) starts[b + 1] += starts[b];
    std::vector<uint16_t> order(n_bits);
    for (size_t i = 0; i < n_bits; ++i) order[starts[bucket[i]]++] = static_cast<uint16_t>(i);
    return order;
}

}  // namespace

RankedBits::RankedBits(const float* z, size_t n_bits, size_t width) {
    const size_t units = (8 * width + kUnit - 1) / kUnit;
    const uint16_t zeros = static_cast<uint16_t>(2 * units * kUnit);  // after all pairs
    places.assign(units * kWeighted, zeros);
    std::vector<float> weights(n_bits), sizes(n_bits);
    size_t of_rank[kUnit] = {};
    const std::vector<uint16_t> order = by_size(z, n_bits);
    double weighted = 0, squares = 0, norm = 0;
    for (size_t r = 0; r < n_bits; ++r) {
        const size_t i = order[r], rank = r * kUnit / n_bits;
        sizes[r] = std::fabs(z[i]);
        norm += sizes[r];
        if (rank < kUnweighted) continue;
        const size_t plane = i / 8 * 8 + 7 - i % 8;  // a code has its first bit highest
        places[of_rank[rank]++ * kWeighted + rank - kUnweighted] =
            static_cast<uint16_t>(2 * plane + (z[i] > 0));
        weights[r] = kRankWeights[rank - kUnweighted];
        weighted += double{weights[r]} * sizes[r];
        squares += double{weights[r]} * weights[r];
    }
    if (weighted == 0) {  // all bits are zero: every row has distance zero
        places.assign(places.size(), zeros);
        return;
    }
    // The best step has the lowest limit for rows of a typical distance.
    double least = std::numeric_limits<double>::infinity();
    for (double share : {0.75, 0.8, 0.85, 0.9, 0.95, 1.0}) {
        const double tried = share * weighted / squares;
        double over = 0;
        for (size_t r = 0; r < n_bits; ++r) over += std::max(0.0, tried * weights[r] - sizes[r]);
        if ((0.3 * norm + over) / tried >= least) continue;
        least = (0.3 * norm + over) / tried;
        step = tried;
        overshoot = over;
    }
}

}  // namespace embits
