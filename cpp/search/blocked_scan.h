// The walk that every top-k over codes shares: blocks of rows, queries of a batch, threads.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "search/kernels.h"
#include "parallel.h"

namespace embits {

// Codes compared while they stay in the first-level cache, for every query of a batch.
constexpr size_t kBlockBytes = 32 << 10;
// A thread is worth starting for this many bytes of codes: about 100 microseconds of scanning.
constexpr size_t kBytesPerThread = 8 << 20;

// Parts of the work for each thread, so that one held up by others leaves some of its own.
constexpr unsigned kPartsPerThread = 4;

// Queries that share a pass over the codes: as many as keep what they found in 64 MB or so.
inline size_t queries_per_pass(size_t k) { return std::clamp<size_t>((2 << 20) / k, 1, 1024); }

inline size_t start_of(unsigned part, unsigned parts, size_t all) {
    return all / parts * part + all % parts * part / parts;
}

// Offers rows [begin, end) to the queries [first, first + kept.size()).
template <class Search>
void scan_rows(const Search& search, size_t begin, size_t end, size_t first,
               std::vector<typename Search::Kept>& kept) {
    const size_t most = std::max<size_t>(64, kBlockBytes / std::max<size_t>(search.width, 1));
    const std::unique_ptr<Hit[]> hits(new Hit[most]);
    // Blocks start small and double: the first rows of a scan nearly all pass the limit, and the
    // sooner it falls the fewer do.
    size_t size = 64;
    for (size_t row = begin; row < end; row += size) {
        size = std::min({size * (row > begin ? 2 : 1), most, end - row});
        for (size_t q = 0; q < kept.size(); ++q)
            search.offer_block(row, size, first + q, kept[q], hits.get());
    }
}

// A Search has: a type Kept with offer_all(later_rows), `width` and `k`, and
//   Kept nothing(q)                            what query q has found before any row
//   offer_block(row, size, q, kept, hits)      offers rows [row, row + size) to query q
//   write(q, kept)                             the answer of query q
// Many queries are shared out among the threads, a few are answered by all of them, a share of
// the rows each; the answer is the same.
template <class Search>
void run_search(const Search& search, size_t n, size_t n_queries, unsigned threads) {
    using Found = std::vector<typename Search::Kept>;
    const auto nothing = [&](size_t first, size_t count) {
        Found found;
        found.reserve(count);
        for (size_t q = first; q < first + count; ++q) found.push_back(search.nothing(q));
        return found;
    };
    const unsigned workers =
        worthwhile_threads(threads, n * search.width * n_queries, kBytesPerThread);
    if (workers > 1 && n_queries < 8 * size_t{workers}) {
        const unsigned parts = kPartsPerThread * workers;
        std::vector<Found> found;
        for (unsigned p = 0; p < parts; ++p) found.push_back(nothing(0, n_queries));
        run_parts(workers, parts, [&](unsigned p) {
            scan_rows(search, start_of(p, parts, n), start_of(p + 1, parts, n), 0, found[p]);
        });
        for (size_t q = 0; q < n_queries; ++q) {
            for (unsigned p = 1; p < parts; ++p) found[0][q].offer_all(found[p][q]);
            search.write(q, found[0][q]);
        }
        return;
    }
    const size_t fair = (n_queries + kPartsPerThread * workers - 1) / (kPartsPerThread * workers);
    const size_t pass = workers == 1 ? queries_per_pass(search.k)
                                     : std::min(queries_per_pass(search.k), fair);
    run_parts(workers, static_cast<unsigned>((n_queries + pass - 1) / pass), [&](unsigned p) {
        const size_t first = p * pass;
        Found found = nothing(first, std::min(pass, n_queries - first));
        scan_rows(search, 0, n, first, found);
        for (size_t q = 0; q < found.size(); ++q) search.write(first + q, found[q]);
    });
}

}  // namespace embits
