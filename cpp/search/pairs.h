// All near pairs among codes that are sorted into buckets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace embits {

// All pairs at `distance` or nearer whose rows are in the same bucket; bucket b has the rows
// [buckets[2 * b], buckets[2 * b + 1]). A pair is two numbers: its first row, and
// distance << kRowBits | its second row.
//
// A pair is kept if its codes agree in all bits of the first mask and differ in each of the
// others: in several tables of buckets, each pair is then kept once. Masks have `width` bytes.
std::vector<int64_t> pairs_in_buckets(const uint8_t* codes, size_t width, const int64_t* buckets,
                                      size_t n_buckets, uint32_t distance, const uint8_t* masks,
                                      size_t n_masks, unsigned threads);

}  // namespace embits
