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
    const Filter& filter;
    const uint8_t* queries;
    size_t k;
    int32_t* distances;
    int64_t* rows;
    bool by_planes;
    const Kernels& kernels = embits::kernels();

    Nearest nothing(size_t) const { return Nearest(k, 8 * width); }

    void offer_block(const uint8_t* block, size_t row, size_t size, size_t q, Nearest& nearest,
                     Hit* hits) const {
        const uint64_t* mask = filter.mask_of(q);
        const size_t found =
            kernels.below(block, size, width, queries + q * width, nearest.limit(), hits);
        for (size_t i = 0; i < found; ++i)
            if (allows(mask, row + hits[i].row))
                nearest.offer(static_cast<int64_t>(row + hits[i].row), hits[i].distance);
    }

    PlaneQueries batch(size_t first, const std::vector<Nearest>& nearest) const {
        return PlaneQueries(kernels.planes, width, queries + first * width, nearest.size());
    }

    void offer_row(const uint8_t* code, size_t row, size_t q, Nearest& nearest) const {
        nearest.offer(static_cast<int64_t>(row),
                      kernels.distance(code, queries + q * width, width));
    }

    void write(size_t q, const Nearest& nearest) const {
        nearest.write(distances + q * k, rows + q * k);
        filter.number(rows + q * k, k);
    }
};

}  // namespace

void top_k(const uint8_t* codes, size_t n, size_t width, const uint8_t* queries, size_t n_queries,
           size_t k, unsigned threads, int32_t* distances, int64_t* rows, const Filter& filter) {
    if (k == 0 || n_queries == 0) return;
    if (filter.starts)
        return search_each(filter, width, n_queries, threads, [&](size_t q, const Filter& own) {
            top_k(codes, n, width, queries + q * width, 1, std::min(k, own.count), 1,
                  distances + q * k, rows + q * k, own);
        });
    const bool by_planes =
        choose_planes(filter.allowed(n), width, n_queries, k, kernels().planes.min_queries);
    run_search(HammingSearch{codes, width, filter, queries, k, distances, rows, by_planes},
               filter.scanned(n), n_queries, threads);
}

}  // namespace embits
