// Threads for one call: started when the work is worth it, gone when the call returns.
#pragma once
#include <cstddef>
#include <functional>

namespace embits {

// How many threads to use for `work` units when each should get at least `least`: never more
// than `wanted`, where 0 stands for every core this process may run on.
unsigned worthwhile_threads(unsigned wanted, size_t work, size_t least);

// Runs part(0) ... part(parts - 1), each on a thread of its own, the first on the caller's; the
// first exception is thrown again here once all have ended.
void run_parts(unsigned parts, const std::function<void(unsigned)>& part);

}  // namespace embits
