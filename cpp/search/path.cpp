#include "search/path.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "search/plane_queries.h"

namespace embits {
namespace {

// With fewer rows than this for each of the k, most blocks have rows that enter.
constexpr size_t kMinRowsPerResult = 64;
constexpr size_t kMinRows = 4096;

enum Path : int { kUnset, kAny, kRows, kPlanes };
std::atomic<int> forced{kUnset};
std::atomic<int> last{kUnset};

Path named(const std::string& name, const char* who) {
    if (name.empty()) return kAny;
    if (name == "rows") return kRows;
    if (name == "planes") return kPlanes;
    throw std::invalid_argument(std::string(who) + " is '" + name +
                                "', expected 'rows' or 'planes'");
}

int forced_path() {
    int path = forced.load(std::memory_order_acquire);
    if (path == kUnset) {
        const char* wanted = std::getenv("EMBITS_PATH");
        path = named(wanted ? wanted : "", "EMBITS_PATH");
        forced.store(path, std::memory_order_release);
    }
    return path;
}

bool planes_pay(size_t n, size_t width, size_t n_queries, size_t k, size_t min_queries) {
    // The row-major kernels are fastest, and planes relatively slow to build, for short codes.
    if (width <= 8) min_queries *= 2;
    return n_queries >= min_queries && n >= kMinRows && n / kMinRowsPerResult >= k;
}

}  // namespace

bool choose_planes(size_t n, size_t width, size_t n_queries, size_t k, size_t min_queries) {
    const int path = forced_path();
    const bool planes = 8 * width <= kMaxPlanes && path != kRows &&
                        (path == kPlanes || planes_pay(n, width, n_queries, k, min_queries));
    last.store(planes ? kPlanes : kRows, std::memory_order_relaxed);
    return planes;
}

const char* last_path() {
    const int path = last.load(std::memory_order_relaxed);
    return path == kPlanes ? "planes" : path == kRows ? "rows" : "";
}

void use_path(const char* name) {
    forced.store(named(name, "path"), std::memory_order_release);
}

}  // namespace embits
