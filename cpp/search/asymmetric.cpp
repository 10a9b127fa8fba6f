// A float query against bits: a fast scan by whole numbers, then exact scores for what it lets by.
//
// <z, 2b - 1> = sum |z| - 2 * (sum of |z_i| over the bits that differ from the sign of z), so the
// best rows are the nearest in a Hamming distance whose bits weigh |z_i|. The scan rounds these
// weights to kWeightBits bits: a lower bound of the true distance follows from the rounded one, and
// rows whose bound is not beaten get their exact score from tables of 16 partial sums, one table
// for each four bits. With four planes about one row in a thousand does.
#include "search/asymmetric.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "search/blocked_scan.h"
#include "search/cell_scan.h"
#include "search/float_query.h"
#include "search/kernels.h"
#include "search/path.h"
#include "search/plane_queries.h"

namespace embits {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The shortest and the longest of some rows.
struct LengthRange {
    float least, most;
};

// The k rows of highest score, a heap with the worst on top; equal scores go by row.
class Best {
   public:
    explicit Best(size_t k, FloatQuery query) : k_(k), query_(std::move(query)) {}

    const FloatQuery& query() const { return query_; }
    // Rows at this weighted distance or beyond cannot enter; a row of equal score still passes.
    uint32_t limit() const { return limit_of(kth_score()); }
    // The same for rows of these lengths, where a score is length * (sum of the bits + offset).
    uint32_t limit(LengthRange lengths, double offset) const {
        const double score = kth_score();
        const double of_bits = score / (score > 0 ? lengths.most : lengths.least);
        if (of_bits == kInfinity) return 0;  // rows of length 0, and a score above 0
        if (!std::isfinite(of_bits)) return limit_of(-kInfinity);
        const double slack = 1e-9 * (std::abs(of_bits) + std::abs(offset));  // above rounding
        return limit_of(of_bits - offset - slack);
    }
    bool has_limit() const { return !std::isinf(kth_score()); }
    WeightedPlaneQueries::Limits plane_limit() const { return query_.plane_limits(kth_score()); }

    // The score of the last of k rows; -infinity before.
    double kth_score() const {
        return kept_.size() < k_ ? outside_ : std::max(outside_, kept_.front().score);
    }

    void offer(double score, int64_t row) {
        const Row offered{score, row};
        if (kept_.size() == k_) {
            if (!better(offered, kept_.front())) return;
            std::pop_heap(kept_.begin(), kept_.end(), better);
            kept_.pop_back();
        }
        kept_.push_back(offered);
        std::push_heap(kept_.begin(), kept_.end(), better);
    }

    // The best k-th score of any thread that searches for the same query.
    struct Shared {
        std::atomic<double> kth{-kInfinity};
    };

    // Shares the k-th score and takes over a better one; returns whether the limits changed.
    bool exchange(Shared& shared) {
        double seen = shared.kth.load(std::memory_order_relaxed);
        if (kept_.size() == k_)
            while (kept_.front().score > seen &&
                   !shared.kth.compare_exchange_weak(seen, kept_.front().score,
                                                     std::memory_order_relaxed)) {
            }
        if (seen <= outside_ || query_.is_lowest(seen)) return false;
        outside_ = seen;
        return true;
    }

    void offer_all(const Best& other) {
        for (const Row& kept : other.kept_) offer(kept.score, kept.row);
    }

    void write(float* scores, int64_t* rows) const {
        std::vector<Row> sorted = kept_;
        std::sort(sorted.begin(), sorted.end(), better);
        for (size_t i = 0; i < sorted.size(); ++i) {
            scores[i] = static_cast<float>(sorted[i].score);
            rows[i] = sorted[i].row;
        }
    }

   private:
    struct Row {
        double score;
        int64_t row;
    };

    static bool better(const Row& a, const Row& b) {
        return a.score > b.score || (a.score == b.score && a.row < b.row);
    }

    uint32_t limit_of(double score) const {
        return score == -kInfinity ? std::numeric_limits<uint32_t>::max() : query_.limit(score);
    }

    size_t k_;
    FloatQuery query_;
    double outside_ = -kInfinity;  // of another thread's rows
    std::vector<Row> kept_;
};

struct AsymmetricSearch {
    using Kept = Best;

    CodeRows codes;
    size_t width;
    const Filter& filter;
    const float* queries;
    size_t n_bits;
    size_t k;
    float* scores;
    int64_t* rows;
    bool by_planes;
    RowLengths lengths;
    const Kernels& kernels = embits::kernels();

    Best nothing(size_t q) const {
        return Best(k, FloatQuery(queries + q * n_bits, n_bits, width, by_planes));
    }

    void offer_block(const uint8_t* block, size_t row, size_t size, size_t q, Best& best,
                     Hit* hits) const {
        const uint64_t* mask = filter.mask_of(q);
        const uint32_t limit = lengths.of_rows
                                   ? best.limit(length_range(row, size), lengths.offsets[q])
                                   : best.limit();
        const size_t found =
            kernels.weighted_below(block, size, width, best.query().weighted(), limit, hits);
        for (size_t i = 0; i < found; ++i)
            if (allows(mask, static_cast<size_t>(
                                 row_number(codes, filter, row + hits[i].row))))
                offer_row(block + hits[i].row * width, row + hits[i].row, q, best);
    }

    bool is_limited(const Best& best) const { return best.has_limit(); }
    double kth_score(const Best& best, size_t) const { return best.kth_score(); }

    WeightedPlaneQueries batch(size_t, const std::vector<Best>& best) const {
        WeightedPlaneQueries batch(kernels.planes, width, best.size());
        for (size_t q = 0; q < best.size(); ++q) batch.set_query(q, best[q].query().ranked(), best[q].query().fine());
        return batch;
    }

    void offer_row(const uint8_t* code, size_t row, size_t q, Best& best) const {
        double score = best.query().score(code);
        if (lengths.of_rows) score = length_of(row) * (score + lengths.offsets[q]);
        best.offer(score, row_number(codes, filter, row));
    }

    float length_of(size_t row) const {
        return lengths.of_rows[filter.rows ? static_cast<size_t>(filter.rows[row]) : row];
    }

    LengthRange length_range(size_t row, size_t size) const {
        LengthRange range{length_of(row), length_of(row)};
        for (size_t i = 1; i < size; ++i) {
            const float length = length_of(row + i);
            range.least = std::min(range.least, length);
            range.most = std::max(range.most, length);
        }
        return range;
    }

    void write(size_t q, const Best& best) const {
        best.write(scores + q * k, rows + q * k);
        if (!codes.is_ordered()) filter.number(rows + q * k, k);
    }
};

}  // namespace

void asymmetric_top_k(CodeRows codes, size_t n, size_t width, const float* queries,
                      size_t n_queries, size_t n_bits, size_t k, unsigned threads, float* scores,
                      int64_t* rows, const Filter& filter, RowLengths lengths,
                      const CellReading* cells) {
    if (k == 0 || n_queries == 0) return;
    if (filter.starts)
        return search_each(filter, width, n_queries, threads, [&](size_t q, const Filter& own) {
            asymmetric_top_k(codes, n, width, queries + q * n_bits, 1, n_bits,
                             std::min(k, own.count), 1, scores + q * k, rows + q * k, own,
                             lengths.of_query(q));
        });
    if (cells)
        return search_cells(AsymmetricSearch{codes, width, filter, queries, n_bits, k, scores, rows,
                                             false, lengths},
                            *cells, n_queries, threads);
    // Planes have one limit for all rows of a block; with lengths each row has its own.
    const bool by_planes =
        !lengths.of_rows &&
        choose_planes(filter.allowed(n), width, n_queries, k, kernels().planes.min_weighted);
    run_search(AsymmetricSearch{codes, width, filter, queries, n_bits, k, scores, rows, by_planes,
                                lengths},
               filter.scanned(n), n_queries, threads);
}

}  // namespace embits
