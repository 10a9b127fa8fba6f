// Threads are started for each call and joined at its end, without a pool. Starting one takes
// about 20 microseconds, and only calls that take longer than 100 start any. A pool would not
// survive fork().
#include "parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace embits {
namespace {

unsigned usable_cores() {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return static_cast<unsigned>(CPU_COUNT(&allowed));
#endif
    const unsigned cores = std::thread::hardware_concurrency();
    return cores ? cores : 1;
}

}  // namespace

unsigned worthwhile_threads(unsigned wanted, size_t work, size_t least) {
    const size_t most = work / least;
    if (most <= 1 || wanted == 1) return 1;
    if (wanted == 0) wanted = usable_cores();
    return most < wanted ? static_cast<unsigned>(most) : wanted;
}

void run_parts(unsigned threads, unsigned parts, const std::function<void(unsigned)>& part) {
    std::atomic<unsigned> next{0};
    std::exception_ptr failure;
    std::mutex failing;
    const auto work = [&] {
        try {
            for (unsigned p = next++; p < parts; p = next++) part(p);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(failing);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        others.reserve(threads);
        while (others.size() + 1 < threads) others.emplace_back(work);
    } catch (const std::exception&) {
        // The system gives no more threads: those that started do all the work.
    }
    work();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace embits
