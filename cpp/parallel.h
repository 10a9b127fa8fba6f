// Threads for one call: started when the work is worth it, gone when the call returns.
#pragma once
#include <cstddef>
#include <functional>

namespace embits {

// How many threads to use for `work` units when each should get at least `least`: never more
// than `wanted`, where 0 stands for every core this process may run on.
unsigned worthwhile_threads(unsigned wanted, size_t work, size_t least);

// Runs part(0) ... part(parts - 1) on `threads` threads, the caller's among them. A thread takes
// the next part when it is done with one, so that a core busy with other work holds up nobody.
// The first exception is thrown again here once all have ended.
void run_parts(unsigned threads, unsigned parts, const std::function<void(unsigned)>& part);

}  // namespace embits
