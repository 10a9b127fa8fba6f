#include "search/top_k.h"

#include "search/blocked_scan.h"
#include "search/kernels.h"
#include "search/nearest.h"
#include "search/path.h"
#include "search/plane_queries.h"

namespace embits {
namespace {

struct HammingSearch {
    using Kept = Nearest;

    const uint8_t* codes;
    size_t width;
    const uint8_t* queries;
    size_t k;
    int32_t* distances;
    int64_t* rows;
    bool by_planes;
    const Kernels& kernels = embits::kernels();

    Nearest nothing(size_t) const { return Nearest(k, 8 * width); }

    void offer_block(size_t row, size_t size, size_t q, Nearest& nearest, Hit* hits) const {
        const size_t found = kernels.below(codes + row * width, size, width, queries + q * width,
                                           nearest.limit(), hits);
        for (size_t i = 0; i < found; ++i)
            nearest.offer(static_cast<int64_t>(row + hits[i].row), hits[i].distance);
    }

    PlaneQueries batch(size_t first, const std::vector<Nearest>& nearest) const {
        return PlaneQueries(kernels.planes, width, queries + first * width, nearest.size());
    }

    void offer_row(size_t row, size_t q, Nearest& nearest) const {
        nearest.offer(static_cast<int64_t>(row),
                      kernels.distance(codes + row * width, queries + q * width, width));
    }

    void write(size_t q, const Nearest& nearest) const {
        nearest.write(distances + q * k, rows + q * k);
    }
};

}  // namespace

void top_k(const uint8_t* codes, size_t n, size_t width, const uint8_t* queries, size_t n_queries,
           size_t k, unsigned threads, int32_t* distances, int64_t* rows) {
    if (k == 0 || n_queries == 0) return;
    const bool by_planes = choose_planes(n, width, n_queries, k, kernels().planes.min_queries);
    run_search(HammingSearch{codes, width, queries, k, distances, rows, by_planes}, n, n_queries,
               threads);
}

}  // namespace embits
