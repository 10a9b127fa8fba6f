// Compares a processor's own kernels with the portable ones: every width from 1 to 1,100 bits,
// unaligned starts, limits that let all, some or no rows by. Ends with 0 when all are equal.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "search/float_query.h"
#include "search/kernels.h"
#include "search/plane_queries.h"

using namespace embits;

namespace {

uint64_t state = 88172645463325252u;
uint64_t random_word() {  // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

// Some bytes random and some zero, so that distances of every size occur.
std::vector<uint8_t> random_bytes(size_t n) {
    std::vector<uint8_t> bytes(n);
    const uint64_t rare = random_word() % 8;
    for (uint8_t& byte : bytes)
        if (random_word() % 8 >= rare) byte = static_cast<uint8_t>(random_word());
    return bytes;
}

bool same(const std::vector<Hit>& a, const std::vector<Hit>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Hit)) == 0);
}

bool equal_at(const Kernels& kernels, size_t n, size_t width, uint32_t limit) {
    const size_t start = random_word() % 64;
    const std::vector<uint8_t> memory = random_bytes(start + n * width);
    const std::vector<uint8_t> query = random_bytes((1 + kWeightBits) * width);
    const WeightedQuery weighted{query.data(), query.data() + width};
    const auto hits = [&](const Kernels& table, bool weigh) {
        std::vector<Hit> found(n);
        const uint8_t* codes = memory.data() + start;
        found.resize(
            weigh ? table.weighted_below(codes, n, width, weighted, 8 * limit, found.data())
                  : table.below(codes, n, width, query.data(), limit, found.data()));
        return found;
    };
    return same(hits(kernels, false), hits(kPortable, false)) &&
           same(hits(kernels, true), hits(kPortable, true));
}

// The rows that planes let through are those whose distance is below the limit.
bool planes_equal_at(const Kernels& kernels, size_t width, uint32_t limit) {
    const size_t n = kernels.planes.rows, n_queries = 3;
    const std::vector<uint8_t> codes = random_bytes(n * width);
    const std::vector<uint8_t> queries = random_bytes(n_queries * width);
    PlaneQueries batch(kernels.planes, width, queries.data(), n_queries);
    for (size_t q = 0; q < n_queries; ++q) batch.set_limit(q, limit);
    batch.build(codes.data(), n);
    std::vector<std::vector<size_t>> found(n_queries);
    for (size_t q = batch.next(0); q < n_queries; q = batch.next(q + 1))
        batch.for_each_row([&](size_t row) { found[q].push_back(row); });
    for (size_t q = 0; q < n_queries; ++q) {
        std::vector<size_t> expected;
        for (size_t row = 0; row < n; ++row)
            if (kPortable.distance(codes.data() + row * width, queries.data() + q * width, width) <
                limit)
                expected.push_back(row);
        if (found[q] != expected) return false;
    }
    return true;
}

// Every row whose fine distance is below the fine limit is a hit: the coarse weights lose none.
bool weighted_planes_equal_at(const Kernels& kernels, size_t width, double share) {
    const size_t n = kernels.planes.rows, n_bits = 8 * width - random_word() % 8;
    const std::vector<uint8_t> codes = random_bytes(n * width);
    std::vector<float> z(n_bits);
    double norm = 0;
    for (float& value : z) {
        value = static_cast<float>(static_cast<int>(random_word() % 2001) - 1000);
        norm += std::fabs(value);
    }
    const FloatQuery query(z.data(), n_bits, width, true);
    WeightedPlaneQueries batch(kernels.planes, width, 1);
    batch.set_query(0, query.ranked(), query.fine());
    const double score = norm * share;
    batch.set_limit(0, query.plane_limits(score));
    batch.build(codes.data(), n);
    std::vector<bool> found(n);
    if (batch.next(0) == 0) batch.for_each_row([&](size_t row) { found[row] = true; });
    for (size_t row = 0; row < n; ++row)
        if (!found[row] && query.score(codes.data() + row * width) >= score) return false;
    return true;
}

}  // namespace

int main() {
    size_t compared = 0;
    for (auto table = available_kernels(); *table; ++table)
        for (size_t width = 1; width <= 138; ++width)
            for (size_t limit : {size_t{1}, 2 * width, 4 * width, 8 * width}) {
                if (!planes_equal_at(**table, width, static_cast<uint32_t>(limit))) {
                    std::printf("%s planes differ: width %zu, limit %zu\n", (*table)->name, width,
                                limit);
                    return 1;
                }
                ++compared;
            }
    for (auto table = available_kernels(); *table; ++table)
        for (size_t width = 1; width <= 138; ++width)
            for (double share : {-0.5, 0.0, 0.2}) {
                if (!weighted_planes_equal_at(**table, width, share)) {
                    std::printf("%s weighted planes lose a row: width %zu\n", (*table)->name,
                                width);
                    return 1;
                }
                ++compared;
            }
    for (auto table = available_kernels(); *table; ++table)
        for (size_t width = 1; width <= 138; ++width)
            for (size_t n : {0, 1, 3, 64, 257}) {
                const uint32_t some = static_cast<uint32_t>(4 * width);
                for (uint32_t limit : {0u, some, 2 * some + 1, 1u << 28}) {
                    if (!equal_at(**table, n, width, limit)) {
                        std::printf("%s differs: width %zu, n %zu, limit %u\n", (*table)->name,
                                    width, n, limit);
                        return 1;
                    }
                    ++compared;
                }
            }
    std::printf("%s equals portable in %zu comparisons\n", kernels().name, compared);
    return 0;
}
