// The k nearest of rows that are offered in row order, or in any order.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace embits {

constexpr unsigned kRowBits = 40;  // of a key, which holds a distance above a row

// Distances are small whole numbers, so how many rows lie at each is counted, and the k-th
// smallest is known at every moment without a heap: an offer costs the same for k = 1 and k = n.
class Nearest {
   public:
    // Wants k >= 1; distances go up to `max_distance`.
    Nearest(size_t k, size_t max_distance, bool any_order = false)
        : k_(k), any_order_(any_order), kth_(static_cast<uint32_t>(max_distance + 1)),
          at_(max_distance + 2) {}

    // A row at this distance or beyond cannot enter: in row order, an equal one in an earlier row
    // goes first.
    uint32_t limit() const { return std::min(own_limit(), outside_); }
    // Whether there are k rows, and the distance of the last one.
    bool is_full() const { return within_ >= k_; }
    uint32_t kth() const { return kth_; }
    uint32_t plane_limit() const { return limit(); }

    // The smallest k-th distance of any thread that searches for the same query.
    struct Shared {
        std::atomic<uint32_t> kth{kNone};
    };

    // Shares the k-th distance, and takes over the limit that follows from a smaller one: rows at
    // an equal distance still enter, since they may come first. Returns whether limit() changed.
    bool exchange(Shared& shared) {
        uint32_t seen = shared.kth.load(std::memory_order_relaxed);
        if (within_ >= k_)
            while (kth_ < seen &&
                   !shared.kth.compare_exchange_weak(seen, kth_, std::memory_order_relaxed)) {
            }
        const uint32_t before = limit();
        if (seen < at_.size() - 2) outside_ = seen + 1;  // beyond, it would pass every row
        return limit() != before;
    }

    void offer(int64_t row, uint32_t distance) {
        if (distance >= own_limit()) return;
        if (kept_.size() >= 2 * k_ + 64) drop_losers();
        kept_.push_back({row, distance});
        ++at_[distance];
        ++within_;
        while (within_ - at_[kth_] >= k_) within_ -= at_[kth_--];
    }

    // Offers what `other` kept; its rows must follow all that were offered here.
    void offer_all(const Nearest& other) {
        for (const Row& kept : other.kept_) offer(kept.row, kept.distance);
    }

    // Writes k rows, nearest first, ties in row order, or all that were offered if they are fewer.
    void write(int32_t* distances, int64_t* rows) const {
        place([&](size_t at, const Row& kept) {
            distances[at] = static_cast<int32_t>(kept.distance);
            rows[at] = kept.row;
        });
    }

    // The same for all rows of fewer than k, as distance << kRowBits | row.
    void write_keys(std::vector<int64_t>& keys) const {
        keys.resize(kept_.size());
        place([&](size_t at, const Row& kept) {
            keys[at] = static_cast<int64_t>(uint64_t{kept.distance} << kRowBits) | kept.row;
        });
    }

   private:
    static constexpr uint32_t kNone = ~uint32_t{0};

    struct Row {
        int64_t row;
        uint32_t distance;
    };

    // Calls put(place, row) for the k best.
    template <class Put>
    void place(const Put& put) const {
        std::vector<size_t> next(kth_ + 1);
        for (uint32_t d = 0; d < kth_; ++d) next[d + 1] = next[d] + at_[d];
        std::vector<Row> sorted;
        if (any_order_) sort(sorted = kept_);
        for (const Row& kept : any_order_ ? sorted : kept_)
            if (kept.distance <= kth_ && next[kept.distance] < k_) put(next[kept.distance]++, kept);
    }

    // Keeps the k best; needs k to have been offered, which a full buffer implies.
    void drop_losers() {
        if (any_order_) sort(kept_);
        size_t ties = k_ - (within_ - at_[kth_]);
        size_t kept = 0;
        for (const Row& row : kept_)
            if (row.distance < kth_ || (row.distance == kth_ && ties && ties--))
                kept_[kept++] = row;
        at_[kth_] -= static_cast<uint32_t>(within_ - k_);
        within_ = k_;
        kept_.resize(kept);
    }

    static void sort(std::vector<Row>& rows) {
        std::sort(rows.begin(), rows.end(),
                  [](const Row& a, const Row& b) { return a.row < b.row; });
    }

    uint32_t own_limit() const { return kth_ + (any_order_ && is_full()); }

    size_t k_;
    bool any_order_;
    uint32_t outside_ = kNone;  // the limit that follows from other threads' rows
    uint32_t kth_;             // the k-th smallest distance; above every distance before k offers
    size_t within_ = 0;        // how many kept rows lie at kth_ or nearer
    std::vector<size_t> at_;   // how many kept rows lie at each distance up to kth_
    std::vector<Row> kept_;    // in the order in which they were offered
};

}  // namespace embits
