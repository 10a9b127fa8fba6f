#include "search/pairs.h"

#include <algorithm>

#include "parallel.h"
#include "search/kernels.h"
#include "search/nearest.h"
#include "search/words.h"

namespace embits {
namespace {

constexpr size_t kMinScanned = 12;  // in fewer rows, single distances are faster than a scan
constexpr size_t kRowsPerScan = 1024;
constexpr size_t kBucketsPerThread = 2048;

using Found = std::vector<int64_t>;

class BucketPairs {
   public:
    BucketPairs(const uint8_t* codes, size_t width, uint32_t distance, const uint8_t* masks,
                size_t n_masks)
        : codes_(codes), width_(width), distance_(distance), masks_(masks), n_masks_(n_masks) {}

    void search(size_t begin, size_t end, Found& found) const {
        for (size_t row = begin; row + 1 < end; ++row)
            for (size_t other = row + 1; other < end; other += kRowsPerScan)
                compare(row, other, std::min(kRowsPerScan, end - other), found);
    }

   private:
    void compare(size_t row, size_t first, size_t count, Found& found) const {
        const uint8_t* code = codes_ + row * width_;
        if (count < kMinScanned) {
            for (size_t other = first; other < first + count; ++other)
                keep(row, other, kernels_.distance(code, codes_ + other * width_, width_), found);
            return;
        }
        Hit hits[kRowsPerScan];
        const size_t n =
            kernels_.below(codes_ + first * width_, count, width_, code, distance_ + 1, hits);
        for (size_t i = 0; i < n; ++i) keep(row, first + hits[i].row, hits[i].distance, found);
    }

    void keep(size_t row, size_t other, uint32_t distance, Found& found) const {
        if (distance > distance_ || !belongs(row, other)) return;
        found.push_back(static_cast<int64_t>(row));
        found.push_back(static_cast<int64_t>(uint64_t{distance} << kRowBits | other));
    }

    bool belongs(size_t row, size_t other) const {
        for (size_t i = 0; i < n_masks_; ++i)
            if (differs(row, other, masks_ + i * width_) != (i > 0)) return false;
        return true;
    }

    bool differs(size_t row, size_t other, const uint8_t* mask) const {
        const uint8_t *a = codes_ + row * width_, *b = codes_ + other * width_;
        for (size_t i = 0; i < width_; i += 8) {
            const size_t left = width_ - i;
            if ((word_at(a + i, left) ^ word_at(b + i, left)) & word_at(mask + i, left))
                return true;
        }
        return false;
    }

    const uint8_t* codes_;
    size_t width_;
    uint32_t distance_;
    const uint8_t* masks_;
    size_t n_masks_;
    const Kernels& kernels_ = kernels();
};

}  // namespace

std::vector<int64_t> pairs_in_buckets(const uint8_t* codes, size_t width, const int64_t* buckets,
                                      size_t n_buckets, uint32_t distance, const uint8_t* masks,
                                      size_t n_masks, unsigned threads) {
    const BucketPairs pairs(codes, width, distance, masks, n_masks);
    const unsigned workers = worthwhile_threads(threads, n_buckets, kBucketsPerThread);
    const unsigned parts = workers == 1 ? 1 : 8 * workers;
    std::vector<Found> found(parts);
    run_parts(workers, parts, [&](unsigned p) {
        for (size_t b = n_buckets * p / parts; b < n_buckets * (p + 1) / parts; ++b)
            pairs.search(static_cast<size_t>(buckets[2 * b]),
                         static_cast<size_t>(buckets[2 * b + 1]), found[p]);
    });
    for (unsigned p = 1; p < parts; ++p) {
        found[0].insert(found[0].end(), found[p].begin(), found[p].end());
        Found().swap(found[p]);
    }
    return std::move(found[0]);
}

}  // namespace embits
