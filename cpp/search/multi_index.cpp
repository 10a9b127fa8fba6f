#include "search/multi_index.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "search/blocked_scan.h"
#include "search/kernels.h"
#include "parallel.h"
#include "search/top_k.h"

namespace embits {
namespace {

// What it costs to go to a bucket, in codes that a scan would pass in that time (measured).
constexpr size_t kCodesPerBucket = 300;

unsigned popcount(uint32_t x) {
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

// How many ways there are to choose `r` of `n`; stops counting at 2^32.
size_t choose(size_t n, size_t r) {
    size_t ways = 1;
    for (size_t i = 0; i < r && ways >> 32 == 0; ++i) ways = ways * (n - i) / (i + 1);
    return ways;
}

// The next larger number with as many bits set (Gosper); x must not be 0.
uint32_t next_same_count(uint32_t x) {
    const uint32_t low = x & (~x + 1), carried = x + low;
    return carried | ((x ^ carried) / low >> 2);
}

}  // namespace

uint32_t MultiIndex::Chunk::of(const uint8_t* code) const {
    uint64_t bytes = 0;
    for (size_t i = first / 8; i <= (first + bits - 1) / 8; ++i) bytes = bytes << 8 | code[i];
    return static_cast<uint32_t>(bytes >> (7 - (first + bits - 1) % 8) & ((1u << bits) - 1));
}

MultiIndex::MultiIndex(const uint8_t* codes, size_t n, size_t width, unsigned n_chunks)
    : codes_(codes), n_(n), width_(width), tables_(n_chunks) {
    const unsigned n_bits = static_cast<unsigned>(8 * width);
    for (unsigned t = 0; t < n_chunks; ++t) {
        const unsigned begin = n_bits * t / n_chunks, end = n_bits * (t + 1) / n_chunks;
        tables_[t].chunk = {begin, end - begin};
    }
    const unsigned workers = worthwhile_threads(0, n * width * n_chunks, kBytesPerThread);
    run_parts(std::min(workers, n_chunks), n_chunks, [&](unsigned t) { fill(tables_[t]); });
}

// A counting sort of the rows by the chunk's value, equal values in row order.
void MultiIndex::fill(Table& table) const {
    table.starts.assign((size_t{1} << table.chunk.bits) + 1, 0);
    table.rows.resize(n_);
    table.codes.resize(n_ * width_);
    const auto value = [&](size_t row) {
        return table.chunk.of(codes_ + row * width_);
    };
    for (size_t row = 0; row < n_; ++row) ++table.starts[value(row) + 1];
    for (size_t v = 1; v < table.starts.size(); ++v) table.starts[v] += table.starts[v - 1];
    std::vector<uint32_t> next(table.starts.begin(), table.starts.end() - 1);
    for (size_t row = 0; row < n_; ++row) {
        const size_t place = next[value(row)]++;
        table.rows[place] = static_cast<uint32_t>(row);
        std::memcpy(&table.codes[place * width_], codes_ + row * width_, width_);
    }
}

// One query on its way through the buckets.
class MultiIndex::Probe {
   public:
    Probe(const MultiIndex& index, const uint8_t* query, size_t k, const uint64_t* mask)
        : index_(index),
          query_(query),
          mask_(mask),
          k_(k),
          kth_(static_cast<uint32_t>(8 * index.width_)),
          at_(8 * index.width_ + 1) {}

    // Visits buckets until nothing nearer can be left; false when a scan would cost less.
    bool run() {
        const size_t m = index_.tables_.size();
        for (unsigned radius = 0;; ++radius)
            for (size_t t = 0; t < m; ++t) {
                const unsigned bits = index_.tables_[t].chunk.bits;
                if (radius > bits) continue;
                const size_t expected =
                    choose(bits, radius) * (kCodesPerBucket + (index_.n_ >> bits));
                if (cost_ + expected > index_.n_) return false;
                visit_shell(t, radius);
                if (found_ >= k_ && kth_ <= m * radius + t) return true;
            }
    }

    void write(int32_t* distances, int64_t* rows) {
        keep_best();
        for (size_t i = 0; i < k_; ++i) {
            distances[i] = static_cast<int32_t>(kept_[i].distance);
            rows[i] = kept_[i].row;
        }
    }

   private:
    struct Row {
        uint32_t distance, row;
        bool operator<(const Row& other) const {
            return distance < other.distance || (distance == other.distance && row < other.row);
        }
    };

    // The buckets whose value differs from the query's chunk in exactly `radius` bits.
    void visit_shell(size_t t, unsigned radius) {
        const Chunk chunk = index_.tables_[t].chunk;
        const uint32_t own = chunk.of(query_);
        if (radius == 0) return visit(t, radius, own);
        const uint64_t end = uint64_t{1} << chunk.bits;
        for (uint64_t flips = (uint64_t{1} << radius) - 1; flips < end;
             flips = next_same_count(static_cast<uint32_t>(flips)))
            visit(t, radius, own ^ static_cast<uint32_t>(flips));
    }

    void visit(size_t t, unsigned radius, uint32_t value) {
        const Table& table = index_.tables_[t];
        const size_t begin = table.starts[value], size = table.starts[value + 1] - begin;
        constexpr size_t kMost = 1024;
        Hit hits[kMost];
        for (size_t done = 0; done < size; done += kMost) {
            const uint8_t* codes = &table.codes[(begin + done) * index_.width_];
            const size_t found = kernels_.below(codes, std::min(kMost, size - done), index_.width_,
                                                query_, kth_ + 1, hits);
            for (size_t i = 0; i < found; ++i) {
                const uint32_t row = table.rows[begin + done + hits[i].row];
                if (allows(mask_, row) && !seen(codes + hits[i].row * index_.width_, t, radius))
                    keep({hits[i].distance, row});
            }
        }
        cost_ += kCodesPerBucket + size;
    }

    // Whether a row found in table t at `radius` was in a bucket visited before.
    bool seen(const uint8_t* code, size_t t, unsigned radius) const {
        for (size_t u = 0; u < index_.tables_.size(); ++u) {
            if (u == t) continue;
            const Chunk& chunk = index_.tables_[u].chunk;
            const unsigned apart = popcount(chunk.of(code) ^ chunk.of(query_));
            if (apart < radius || (apart == radius && u < t)) return true;
        }
        return false;
    }

    void keep(Row row) {
        if (row.distance > kth_) return;
        if (kept_.size() >= 4 * k_ + 1024) keep_best();
        kept_.push_back(row);
        ++found_;
        ++at_[row.distance];
        ++within_;
        while (kth_ > 0 && within_ - at_[kth_] >= k_) within_ -= at_[kth_--];
    }

    void keep_best() {
        const size_t k = std::min(k_, kept_.size());
        std::partial_sort(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(k),
                          kept_.end());
        kept_.resize(k);
    }

    const MultiIndex& index_;
    const uint8_t* query_;
    const uint64_t* mask_;
    size_t k_;
    uint32_t kth_;            // the k-th smallest distance found; the largest there is before that
    size_t found_ = 0;
    size_t within_ = 0;       // rows found at kth_ or nearer
    size_t cost_ = 0;         // of the buckets visited, in codes passed by a scan
    std::vector<size_t> at_;  // rows found at each distance up to kth_
    std::vector<Row> kept_;
    const Kernels& kernels_ = kernels();
};

bool MultiIndex::probe(const uint8_t* query, size_t k, int32_t* distances, int64_t* rows,
                       const uint64_t* mask) const {
    Probe probe(*this, query, k, mask);
    if (!probe.run()) return false;
    probe.write(distances, rows);
    return true;
}

size_t MultiIndex::top_k(const uint8_t* queries, size_t n_queries, size_t k, unsigned threads,
                         int32_t* distances, int64_t* rows, const Filter& filter) const {
    if (k == 0 || n_queries == 0) return 0;
    std::vector<uint8_t> answered(n_queries);
    constexpr size_t kQueriesPerPart = 8;
    const unsigned parts =
        static_cast<unsigned>((n_queries + kQueriesPerPart - 1) / kQueriesPerPart);
    run_parts(worthwhile_threads(threads, n_queries, kQueriesPerPart), parts, [&](unsigned p) {
        const size_t first = p * kQueriesPerPart;
        for (size_t q = first; q < std::min(first + kQueriesPerPart, n_queries); ++q)
            answered[q] = probe(queries + q * width_, k, distances + q * k, rows + q * k, filter.mask);
    });

    std::vector<size_t> left;
    std::vector<uint8_t> left_queries;
    for (size_t q = 0; q < n_queries; ++q) {
        if (answered[q]) continue;
        left.push_back(q);
        left_queries.insert(left_queries.end(), queries + q * width_, queries + (q + 1) * width_);
    }
    std::vector<int32_t> left_distances(left.size() * k);
    std::vector<int64_t> left_rows(left.size() * k);
    embits::top_k(codes_, n_, width_, left_queries.data(), left.size(), k, threads,
                  left_distances.data(), left_rows.data(), filter);
    for (size_t i = 0; i < left.size(); ++i) {
        std::copy_n(&left_distances[i * k], k, distances + left[i] * k);
        std::copy_n(&left_rows[i * k], k, rows + left[i] * k);
    }
    return left.size();
}

size_t MultiIndex::bytes() const {
    size_t sum = 0;
    for (const Table& table : tables_)
        sum += table.codes.size() + sizeof(uint32_t) * (table.rows.size() + table.starts.size());
    return sum;
}

}  // namespace embits
