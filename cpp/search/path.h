// Which way a search takes: row by row, or by bit planes (see planes.h).
#pragma once
#include <cstddef>

namespace embits {

// Chooses the way for a search and remembers it for last_path(). Planes pay from `min_queries` of
// the kernel on; see PlaneKernel. Throws std::invalid_argument when
// EMBITS_PATH is neither "rows" nor "planes".
bool choose_planes(size_t n, size_t width, size_t n_queries, size_t k,
                   size_t min_queries);

// "rows" or "planes": the way of the last search of this process; "" before the first.
const char* last_path();

// "rows" or "planes" forces that way where it is possible, "" leaves the choice to the search;
// throws std::invalid_argument for another name.
void use_path(const char* name);

}  // namespace embits
