#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

// Packs the signs of n rows of scores, `bits` each, first bit highest: a bit of `codes` is 1 where
// its score is 0 or more, one of `doubtful` where the score is no further from zero than the row's
// error, or NaN. Both have ceil(bits / 8) bytes a row; the bits beyond are 0. Returns how many
// bytes of `doubtful` are not zero.
size_t pack_signs(const float* scores, const float* errors, size_t n, size_t bits, uint8_t* codes,
                  uint8_t* doubtful);

}  // namespace embits
