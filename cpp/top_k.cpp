#include "top_k.h"

#include <algorithm>
#include <vector>

#include "kernels.h"

namespace embits {

void top_k(const uint8_t* codes, size_t n, size_t width, const uint8_t* queries, size_t n_queries,
           size_t k, unsigned, int32_t* out_distances, int64_t* out_rows) {
    std::vector<int32_t> distances(n);
    std::vector<size_t> first(8 * width + 2);
    for (size_t q = 0; q < n_queries; ++q) {
        kernels().distances(codes, n, width, queries + q * width, distances.data());
        // Counting sort: distances are small whole numbers, and equal ones keep row order.
        std::fill(first.begin(), first.end(), 0);
        for (int32_t d : distances) ++first[d + 1];
        for (size_t d = 1; d < first.size(); ++d) first[d] += first[d - 1];
        for (size_t row = 0; row < n; ++row) {
            size_t place = first[distances[row]]++;
            if (place >= k) continue;
            out_distances[q * k + place] = distances[row];
            out_rows[q * k + place] = static_cast<int64_t>(row);
        }
    }
}

}  // namespace embits
