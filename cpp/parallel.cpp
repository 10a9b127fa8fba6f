// Plain threads, and no pool that lives on: starting one costs about 20 microseconds, which only
// calls above a hundred of them pay, and a pool would not survive fork().
#include "parallel.h"

#include <exception>
#include <mutex>
#include <system_error>
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

void run_parts(unsigned parts, const std::function<void(unsigned)>& part) {
    std::exception_ptr failure;
    std::mutex failing;
    const auto guarded = [&](unsigned p) {
        try {
            part(p);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(failing);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(parts);
    unsigned started = 1;
    try {
        for (; started < parts; ++started) threads.emplace_back(guarded, started);
    } catch (const std::system_error&) {
        // No thread to be had: the caller's does the rest.
    }
    guarded(0);
    for (unsigned p = started; p < parts; ++p) guarded(p);
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace embits
