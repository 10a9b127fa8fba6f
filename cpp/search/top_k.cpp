#include "search/top_k.h"

#include <atomic>
#include <limits>
#include <stdexcept>

#include "search/blocked_scan.h"
#include "search/cell_scan.h"
#include "search/kernels.h"
#include "search/nearest.h"
#include "search/path.h"
#include "search/plane_queries.h"

namespace embits {
namespace {

// Where the answers of a radius search go: for each query its rows as keys.
struct Ragged {
    uint32_t distance;
    size_t max_found;
    std::vector<std::vector<int64_t>> keys;
    std::atomic<size_t> found{0};

    void count(size_t more) {
        if ((found += more) > max_found) throw std::overflow_error("too many rows");
    }
};

// Both searches by Hamming distance: of the k nearest rows, and of those within a radius, which
// are the n nearest up to that distance.
struct HammingSearch {
    using Kept = Nearest;

    CodeRows codes;
    size_t width;
    const Filter& filter;
    const uint8_t* queries;
    size_t k;  // rows that a query needs before it has a limit
    int32_t* distances;
    int64_t* rows;
    bool by_planes;
    Ragged* ragged = nullptr;
    const Kernels& kernels = embits::kernels();

    Nearest nothing(size_t) const {
        return ragged ? Nearest(~size_t{0} / 4, ragged->distance, codes.is_ordered())
                      : Nearest(k, 8 * width, codes.is_ordered());
    }

    void offer_block(const uint8_t* block, size_t row, size_t size, size_t q, Nearest& nearest,
                     Hit* hits) const {
        const uint64_t* mask = filter.mask_of(q);
        const size_t found =
            kernels.below(block, size, width, queries + q * width, nearest.limit(), hits);
        size_t passed = 0;
        for (size_t i = 0; i < found; ++i) {
            const int64_t number = row_number(codes, filter, row + hits[i].row);
            if (!allows(mask, static_cast<size_t>(number))) continue;
            nearest.offer(number, hits[i].distance);
            ++passed;
        }
        if (ragged) ragged->count(passed);
    }

    // What a code of n_bits scores in the last of k rows; -infinity before.
    double kth_score(const Nearest& nearest, size_t n_bits) const {
        return nearest.is_full() ? double(n_bits) - 2.0 * nearest.kth()
                                 : -std::numeric_limits<double>::infinity();
    }

    // Planes hold limits up to the largest distance.
    bool is_limited(const Nearest& nearest) const { return nearest.limit() <= 8 * width; }

    PlaneQueries batch(size_t first, const std::vector<Nearest>& nearest) const {
        return PlaneQueries(kernels.planes, width, queries + first * width, nearest.size());
    }

    void offer_row(const uint8_t* code, size_t row, size_t q, Nearest& nearest) const {
        if (ragged) ragged->count(1);
        nearest.offer(row_number(codes, filter, row),
                      kernels.distance(code, queries + q * width, width));
    }

    void write(size_t q, const Nearest& nearest) const {
        if (ragged) return nearest.write_keys(ragged->keys[q]);
        nearest.write(distances + q * k, rows + q * k);
        if (!codes.is_ordered()) filter.number(rows + q * k, k);
    }
};

// About how many rows a query finds, from a few queries on the first rows.
size_t expected_rows(CodeRows codes, size_t n, size_t width, const uint8_t* queries,
                     size_t n_queries, uint32_t distance) {
    Hit hits[1024];
    const size_t tried = std::min<size_t>(n_queries, 16);
    size_t rows = std::min<size_t>(n, 1024), found = 0;
    const uint8_t* first = codes.block(0, std::min<size_t>(n, 1), width, nullptr, rows);
    for (size_t q = 0; q < tried; ++q)
        found += kernels().below(first, rows, width, queries + q * width, distance + 1, hits);
    return rows ? found * (n / rows) / tried : 0;
}

}  // namespace

void top_k(CodeRows codes, size_t n, size_t width, const uint8_t* queries, size_t n_queries,
           size_t k, unsigned threads, int32_t* distances, int64_t* rows, const Filter& filter,
           const CellReading* cells) {
    if (k == 0 || n_queries == 0) return;
    if (filter.starts)
        return search_each(filter, width, n_queries, threads, [&](size_t q, const Filter& own) {
            top_k(codes, n, width, queries + q * width, 1, std::min(k, own.count), 1,
                  distances + q * k, rows + q * k, own);
        });
    if (cells)
        return search_cells(
            HammingSearch{codes, width, filter, queries, k, distances, rows, false}, *cells,
            n_queries, threads);
    const bool by_planes =
        choose_planes(filter.allowed(n), width, n_queries, k, kernels().planes.min_queries);
    run_search(HammingSearch{codes, width, filter, queries, k, distances, rows, by_planes},
               filter.scanned(n), n_queries, threads);
}

RowsWithin within(CodeRows codes, size_t n, size_t width, const uint8_t* queries,
                  size_t n_queries, uint32_t distance, size_t max_found, unsigned threads,
                  const Filter& filter) {
    Ragged ragged{distance, max_found, std::vector<std::vector<int64_t>>(n_queries)};
    if (n && n_queries) {
        // Planes cannot hold a limit above the largest distance.
        const bool by_planes =
            distance < 8 * width &&
            choose_planes(n, width, n_queries,
                          expected_rows(codes, n, width, queries, n_queries, distance),
                          kernels().planes.min_queries);
        run_search(
            HammingSearch{codes, width, filter, queries, 1, nullptr, nullptr, by_planes, &ragged},
            n, n_queries, threads);
    }
    RowsWithin all;
    all.offsets.resize(n_queries + 1);
    all.keys.resize(ragged.found);
    for (size_t q = 0; q < n_queries; ++q) {
        std::vector<int64_t> keys;
        keys.swap(ragged.keys[q]);  // frees them at the end of the turn
        std::copy(keys.begin(), keys.end(), all.keys.begin() + all.offsets[q]);
        all.offsets[q + 1] = all.offsets[q] + static_cast<int64_t>(keys.size());
    }
    return all;
}

}  // namespace embits
