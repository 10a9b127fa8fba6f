// The walk that every top-k over codes shares: blocks of rows, queries of a batch, threads.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "search/code_rows.h"
#include "search/filter.h"
#include "search/kernels.h"
#include "parallel.h"

namespace embits {

// The size of a block of codes: it stays in the first-level cache while all queries of a batch
// are compared with it.
constexpr size_t kBlockBytes = 32 << 10;
// A thread is started for this many bytes of codes: about 100 microseconds of scanning.
constexpr size_t kBytesPerThread = 8 << 20;
// A thread that is delayed leaves the remaining parts of its work to the others.
constexpr unsigned kPartsPerThread = 4;
// With fewer queries for each thread, the threads share the rows instead of the queries.
constexpr size_t kQueriesPerThread = 8, kPlaneQueriesPerThread = 64;
// The limits of other threads are read once in this many blocks of planes.
constexpr size_t kBlocksPerExchange = 16;
// The most rows of a block of planes.
constexpr size_t kMaxPlaneRows = 512;

// Queries that share a pass over the codes: what they have found stays within about 64 MB.
inline size_t queries_per_pass(size_t k) { return std::clamp<size_t>((2 << 20) / k, 1, 1024); }

inline size_t start_of(unsigned part, unsigned parts, size_t all) {
    return all / parts * part + all % parts * part / parts;
}

// The row of a code that a scan came to.
inline int64_t row_number(const CodeRows& codes, const Filter& filter, size_t at) {
    if (!codes.is_ordered()) return static_cast<int64_t>(at);
    return codes.row_of(filter.rows ? static_cast<size_t>(filter.rows[at]) : at);
}

// A Search has `width`, `k`, `codes`, `filter`, `by_planes` and
//   Kept                                       what a query has found; see Nearest
//   Kept nothing(q)                            what query q has found before any row
//   offer_block(codes, row, size, q, kept, hits)   offers rows [row, row + size) to query q
//   is_limited(kept)                           whether planes can hold its limit
//   Batch batch(first, kept)                   the queries as plane kernels read them
//   offer_row(code, row, q, kept)              offers one row that the planes let through
//   write(q, kept)                             writes the answer of query q
// Rows are those of the scan: with a filter that has rows, the places in it.
// BatchScan offers rows to the queries [first, first + kept.size()). `shared` has a value for each
// of them when several threads scan different rows for the same queries, and is null otherwise.
template <class Search>
class BatchScan {
   public:
    using Kept = typename Search::Kept;
    using Shared = typename Kept::Shared;

    BatchScan(const Search& search, size_t first, std::vector<Kept>& kept, Shared* shared)
        : search_(search), first_(first), kept_(kept), shared_(shared),
          block_(std::max<size_t>(64, kBlockBytes / std::max<size_t>(search.width, 1))),
          hits_(new Hit[std::max(block_, kMaxPlaneRows)]) {
        if (search.filter.rows || !search.codes.is_one_array())
            gathered_.reset(new uint8_t[std::max(block_, kMaxPlaneRows) * search.width]);
    }

    void scan(size_t begin, size_t end) {
        if (search_.by_planes) {
            // Planes need a limit, which a query has after k rows.
            const size_t head = std::min(end, begin + std::max<size_t>(search_.k, kHead));
            scan_blocks(begin, head);
            begin = scan_planes(head, end);
        }
        scan_blocks(begin, end);
    }

   private:
    static constexpr size_t kHead = 512;

    // Blocks start small and double: nearly all of the first rows pass the limit, and each pass
    // lowers it.
    void scan_blocks(size_t begin, size_t end) {
        size_t size = 64;
        for (size_t row = begin; row < end; row += size) {
            size = std::min({size * (row > begin ? 2 : 1), block_, end - row});
            size_t left = end - row;
            const uint8_t* codes = codes_of(row, size, left);
            for (size_t q = 0; q < kept_.size(); ++q) {
                offer_block(codes, row, size, q);
                if (shared_) kept_[q].exchange(shared_[q]);
            }
        }
    }

    void offer_block(const uint8_t* codes, size_t row, size_t size, size_t q) {
        // Rows that are stored in another order are looked up one by one.
        if (search_.codes.is_ordered() ||
            allows_any(search_.filter.mask_of(first_ + q), row, size))
            search_.offer_block(codes, row, size, first_ + q, kept_[q], hits_.get());
    }

    // The codes of rows [row, row + size), side by side; `left` becomes the rows readable there.
    const uint8_t* codes_of(size_t row, size_t size, size_t& left) {
        const Filter& filter = search_.filter;
        if (!filter.rows)
            return search_.codes.block(row, size, search_.width, gathered_.get(), left);
        search_.codes.gather(search_.width, filter.rows + row, size, filter.count - row,
                             gathered_.get());
        left = size;
        return gathered_.get();
    }

    // Scans whole blocks of planes; returns the first row after them.
    size_t scan_planes(size_t begin, size_t end) {
        auto batch = search_.batch(first_, kept_);
        for (size_t q = 0; q < kept_.size(); ++q) batch.set_limit(q, kept_[q].plane_limit());
        find_waiting();
        const Filter& filter = search_.filter;
        size_t row = begin;
        for (size_t block = 1; row + batch.rows() <= end; row += batch.rows(), ++block) {
            if (filter.mask && !search_.codes.is_ordered()) {
                if (!allows_any(filter.mask, row, batch.rows())) continue;
                copy_mask(filter.mask, row, batch.rows() / 64, allowed_);
                batch.allow(allowed_);
            }
            size_t left = end - row;
            const uint8_t* codes = codes_of(row, batch.rows(), left);
            batch.build(codes, left);
            for (size_t q = batch.next(0); q < kept_.size(); q = batch.next(q + 1))
                if (!waits_[q]) offer_found(batch, codes, row, q);
            if (n_waiting_) offer_waiting(batch, codes, row);
            if (!shared_ || block % kBlocksPerExchange) continue;
            for (size_t q = 0; q < kept_.size(); ++q)
                if (kept_[q].exchange(shared_[q])) batch.set_limit(q, kept_[q].plane_limit());
        }
        return row;
    }

    // Offers the rows of a block that the planes let through.
    template <class Batch>
    void offer_found(Batch& batch, const uint8_t* codes, size_t row, size_t q) {
        const Filter& filter = search_.filter;
        const bool each = filter.masks || search_.codes.is_ordered();
        const uint64_t* own = each ? filter.mask_of(first_ + q) : nullptr;
        batch.for_each_row([&](size_t i) {
            if (allows(own, static_cast<size_t>(search_.codes.row_of(row + i))))
                search_.offer_row(codes + i * search_.width, row + i, first_ + q, kept_[q]);
        });
        batch.set_limit(q, kept_[q].plane_limit());
    }

    // A mask may leave a query without k rows, and planes need a limit: such a query is offered
    // all rows until it has one.
    void find_waiting() {
        waits_.assign(kept_.size(), 0);
        for (size_t q = 0; q < kept_.size(); ++q)
            if (!search_.is_limited(kept_[q])) waits_[q] = 1, ++n_waiting_;
    }

    template <class Batch>
    void offer_waiting(Batch& batch, const uint8_t* codes, size_t row) {
        for (size_t q = 0; q < kept_.size(); ++q) {
            if (!waits_[q]) continue;
            offer_block(codes, row, batch.rows(), q);
            if (!search_.is_limited(kept_[q])) continue;
            waits_[q] = 0, --n_waiting_;
            batch.set_limit(q, kept_[q].plane_limit());
        }
    }

    const Search& search_;
    size_t first_;
    std::vector<Kept>& kept_;
    Shared* shared_;
    size_t block_;
    std::unique_ptr<Hit[]> hits_;
    std::unique_ptr<uint8_t[]> gathered_;  // the codes of a block that are not side by side
    std::vector<uint8_t> waits_;           // whether a query has no limit yet
    size_t n_waiting_ = 0;
    uint64_t allowed_[kMaxPlaneRows / 64];  // rows of a block that pass a mask for all queries
};

template <class Search>
std::vector<typename Search::Kept> nothing_found(const Search& search, size_t first,
                                                 size_t count) {
    std::vector<typename Search::Kept> found;
    found.reserve(count);
    for (size_t q = first; q < first + count; ++q) found.push_back(search.nothing(q));
    return found;
}

// Each thread takes some of the rows, for all queries.
template <class Search>
void share_rows(const Search& search, size_t n, size_t n_queries, unsigned threads) {
    using Kept = typename Search::Kept;
    const unsigned parts = n_queries > kQueriesPerThread ? threads : kPartsPerThread * threads;
    std::vector<typename Kept::Shared> shared(n_queries);
    std::vector<std::vector<Kept>> found;
    for (unsigned p = 0; p < parts; ++p) found.push_back(nothing_found(search, 0, n_queries));
    run_parts(threads, parts, [&](unsigned p) {
        BatchScan<Search>(search, 0, found[p], shared.data())
            .scan(start_of(p, parts, n), start_of(p + 1, parts, n));
    });
    for (size_t q = 0; q < n_queries; ++q) {
        for (unsigned p = 1; p < parts; ++p) found[0][q].offer_all(found[p][q]);
        search.write(q, found[0][q]);
    }
}

// Each thread takes some of the queries, for all rows.
template <class Search>
void share_queries(const Search& search, size_t n, size_t n_queries, unsigned threads) {
    const size_t shares = (search.by_planes ? 1 : kPartsPerThread) * threads;
    const size_t fair = (n_queries + shares - 1) / shares;
    const size_t pass =
        threads == 1 ? queries_per_pass(search.k) : std::min(queries_per_pass(search.k), fair);
    run_parts(threads, static_cast<unsigned>((n_queries + pass - 1) / pass), [&](unsigned p) {
        const size_t first = p * pass;
        auto found = nothing_found(search, first, std::min(pass, n_queries - first));
        BatchScan<Search>(search, first, found, nullptr).scan(0, n);
        for (size_t q = 0; q < found.size(); ++q) search.write(first + q, found[q]);
    });
}

// The answer does not depend on the number of threads.
template <class Search>
void run_search(const Search& search, size_t n, size_t n_queries, unsigned threads) {
    const size_t passes = n_queries + (search.filter.rows ? kGatherCost : 0);
    const unsigned workers =
        worthwhile_threads(threads, n * search.width * passes, kBytesPerThread);
    const size_t enough = search.by_planes ? kPlaneQueriesPerThread : kQueriesPerThread;
    if (workers > 1 && n_queries < enough * workers)
        share_rows(search, n, n_queries, workers);
    else
        share_queries(search, n, n_queries, workers);
}

}  // namespace embits
