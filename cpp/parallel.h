// Threads that live for one call.
#pragma once
#include <cstddef>
#include <functional>

namespace embits {

// How many threads to use for `work` units when each should get at least `least`: never more
// than `wanted`, where 0 stands for every core this process may run on.
unsigned worthwhile_threads(unsigned wanted, size_t work, size_t least);

// Runs part(0) ... part(parts - 1) on `threads` threads, the caller's among them. A thread takes
// the next part when it finishes one, so a core that is busy with other work delays only its own
// part. The first exception is thrown again here after all threads have ended.
void run_parts(unsigned threads, unsigned parts, const std::function<void(unsigned)>& part);

}  // namespace embits
