#include "top_k.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels.h"
#include "nearest.h"
#include "parallel.h"

namespace embits {
namespace {

// Codes compared while they stay in the first-level cache, for every query of a batch.
constexpr size_t kBlockBytes = 16 << 10;
// A thread is worth starting for this many bytes of codes: about 100 microseconds of scanning.
constexpr size_t kBytesPerThread = 8 << 20;
// Queries that share a pass over the codes: as many as keep what they found in 64 MB or so.
size_t queries_per_pass(size_t k) { return std::clamp<size_t>((2 << 20) / k, 1, 1024); }

struct Scan {
    const uint8_t* codes;
    size_t width;
    const uint8_t* queries;
    size_t k;
    const Kernels& kernels = embits::kernels();

    std::vector<Nearest> none(size_t queries_count) const {
        return std::vector<Nearest>(queries_count, Nearest(k, 8 * width));
    }

    // Offers rows [begin, end) to the nearest of queries [first, first + nearest.size()).
    void rows(size_t begin, size_t end, size_t first, std::vector<Nearest>& nearest) const {
        const size_t most = std::max<size_t>(64, kBlockBytes / std::max<size_t>(width, 1));
        const std::unique_ptr<Hit[]> hits(new Hit[most]);
        // Blocks start small and double: the first rows of a scan nearly all pass the limit, and
        // the sooner it falls the fewer do.
        size_t size = 64;
        for (size_t row = begin; row < end; row += size) {
            size = std::min({size * (row > begin ? 2 : 1), most, end - row});
            for (size_t q = 0; q < nearest.size(); ++q) {
                const size_t found =
                    kernels.below(codes + row * width, size, width,
                                  queries + (first + q) * width, nearest[q].limit(), hits.get());
                for (size_t i = 0; i < found; ++i)
                    nearest[q].offer(static_cast<int64_t>(row + hits[i].row), hits[i].distance);
            }
        }
    }
};

}  // namespace

void top_k(const uint8_t* codes, size_t n, size_t width, const uint8_t* queries, size_t n_queries,
           size_t k, unsigned threads, int32_t* out_distances, int64_t* out_rows) {
    if (k == 0 || n_queries == 0) return;
    const Scan scan{codes, width, queries, k};
    const auto write = [&](size_t first, const std::vector<Nearest>& nearest) {
        for (size_t q = 0; q < nearest.size(); ++q)
            nearest[q].write(out_distances + (first + q) * k, out_rows + (first + q) * k);
    };
    const auto share = [](size_t all, unsigned part, unsigned parts) {
        return all / parts * part + all % parts * part / parts;
    };
    const unsigned parts = worthwhile_threads(threads, n * width * n_queries, kBytesPerThread);
    if (n_queries >= 8 * size_t{parts} || parts == 1) {
        run_parts(parts, [&](unsigned p) {
            const size_t end = share(n_queries, p + 1, parts);
            const size_t pass = queries_per_pass(k);
            for (size_t q = share(n_queries, p, parts); q < end; q += pass) {
                auto nearest = scan.none(std::min(pass, end - q));
                scan.rows(0, n, q, nearest);
                write(q, nearest);
            }
        });
        return;
    }
    std::vector<std::vector<Nearest>> found(parts, scan.none(n_queries));
    run_parts(parts, [&](unsigned p) {
        scan.rows(share(n, p, parts), share(n, p + 1, parts), 0, found[p]);
    });
    for (unsigned p = 1; p < parts; ++p)
        for (size_t q = 0; q < n_queries; ++q) found[0][q].offer_all(found[p][q]);
    write(0, found[0]);
}

}  // namespace embits
