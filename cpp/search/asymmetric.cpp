// A float query against bits: a fast scan by whole numbers, then exact scores for what it lets by.
//
// <z, 2b - 1> = sum |z| - 2 * (sum of |z_i| over the bits that differ from the sign of z), so the
// best rows are the nearest in a Hamming distance whose bits weigh |z_i|. The scan rounds these
// weights to kWeightBits bits: a lower bound of the true distance follows from the rounded one, and
// rows whose bound is not beaten get their exact score from tables of 16 partial sums, one table
// for each four bits. With four planes about one row in a thousand does.
#include "search/asymmetric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "search/blocked_scan.h"
#include "search/kernels.h"

namespace embits {
namespace {

constexpr uint32_t kMaxWeight = (1u << kWeightBits) - 1;

class FloatQuery {
   public:
    FloatQuery(const float* z, size_t n_bits, size_t width)
        : width_(width), code_(width), planes_(kWeightBits * width), tables_(32 * width) {
        choose_step(z, n_bits);
        for (size_t i = 0; i < n_bits; ++i) {
            const uint8_t bit = static_cast<uint8_t>(0x80 >> i % 8);
            const uint32_t weight = rounded(z[i], step_);
            if (z[i] > 0) code_[i / 8] |= bit;
            for (size_t p = 0; p < kWeightBits; ++p)
                if (weight >> (kWeightBits - 1 - p) & 1) planes_[p * width + i / 8] |= bit;
            norm_ += std::fabs(static_cast<double>(z[i]));
            overshoot_ += std::max(0.0, weight * step_ - std::fabs(static_cast<double>(z[i])));
        }
        for (size_t i = 0; i < n_bits; ++i)
            for (size_t four = 0; four < 16; ++four)
                tables_[i / 4 * 16 + four] += four & (8 >> i % 4) ? double{z[i]} : -double{z[i]};
    }

    WeightedQuery weighted() const { return {code_.data(), planes_.data()}; }

    double score(const uint8_t* code) const {
        const double* table = tables_.data();
        double sum = 0;
        for (size_t i = 0; i < width_; ++i, table += 32)
            sum = (sum + table[code[i] >> 4]) + table[16 + (code[i] & 15)];
        return sum;
    }

    // No row at this rounded distance or beyond scores more than `score`.
    uint32_t limit(double score) const {
        const double slack = 1e-9 * norm_;  // far above what rounding adds to sums in float64
        const double distance = (norm_ - score) / 2 + overshoot_ + slack;
        const double steps = std::floor(distance / step_) + 1;
        return static_cast<uint32_t>(std::clamp(steps, 0.0, 4e9));
    }

   private:
    static uint32_t rounded(float z, double step) {
        return static_cast<uint32_t>(
            std::min(std::fabs(double{z}) / step + 0.5, kMaxWeight + 0.5));
    }

    // The step that rounds with the least total error: a few large weights are better cut off.
    void choose_step(const float* z, size_t n_bits) {
        double largest = 0;
        for (size_t i = 0; i < n_bits; ++i) largest = std::max(largest, std::fabs(double{z[i]}));
        if (largest == 0) return;
        double least = std::numeric_limits<double>::infinity();
        for (double share : {1.0, 0.85, 0.7, 0.55}) {
            const double step = share * largest / kMaxWeight;
            double error = 0;
            for (size_t i = 0; i < n_bits; ++i)
                error += std::fabs(std::fabs(double{z[i]}) - step * rounded(z[i], step));
            if (error < least) {
                least = error;
                step_ = step;
            }
        }
    }

    size_t width_;
    double step_ = 1;
    double norm_ = 0;       // sum |z|
    double overshoot_ = 0;  // by how much the rounded distance can exceed the true one
    std::vector<uint8_t> code_, planes_;
    std::vector<double> tables_;
};

// The k rows of highest score, a heap with the worst on top; equal scores go by row.
class Best {
   public:
    explicit Best(size_t k, FloatQuery query) : k_(k), query_(std::move(query)) {}

    const FloatQuery& query() const { return query_; }
    uint32_t limit() const {
        return kept_.size() < k_ ? std::numeric_limits<uint32_t>::max()
                                 : query_.limit(kept_.front().score);
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

    struct Shared {};
    bool exchange(Shared&) { return false; }

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

    size_t k_;
    FloatQuery query_;
    std::vector<Row> kept_;
};

struct AsymmetricSearch {
    using Kept = Best;
    static constexpr bool kHasPlanes = false;

    const uint8_t* codes;
    size_t width;
    const float* queries;
    size_t n_bits;
    size_t k;
    float* scores;
    int64_t* rows;
    bool by_planes = false;
    const Kernels& kernels = embits::kernels();

    Best nothing(size_t q) const {
        return Best(k, FloatQuery(queries + q * n_bits, n_bits, width));
    }

    void offer_block(size_t row, size_t size, size_t q, Best& best, Hit* hits) const {
        (void)q;
        const uint8_t* block = codes + row * width;
        const size_t found = kernels.weighted_below(block, size, width, best.query().weighted(),
                                                    best.limit(), hits);
        for (size_t i = 0; i < found; ++i)
            best.offer(best.query().score(block + hits[i].row * width),
                       static_cast<int64_t>(row + hits[i].row));
    }

    void write(size_t q, const Best& best) const { best.write(scores + q * k, rows + q * k); }
};

}  // namespace

void asymmetric_top_k(const uint8_t* codes, size_t n, size_t width, const float* queries,
                      size_t n_queries, size_t n_bits, size_t k, unsigned threads, float* scores,
                      int64_t* rows) {
    if (k == 0 || n_queries == 0) return;
    run_search(AsymmetricSearch{codes, width, queries, n_bits, k, scores, rows}, n, n_queries,
               threads);
}

}  // namespace embits
