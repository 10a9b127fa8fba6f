#include "coders/signs.h"

#include <cmath>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

namespace embits {
namespace {

struct Signs {
    unsigned sign = 0, doubt = 0;
};

// Of up to eight scores.
Signs signs_of(const float* scores, float error, size_t count) {
    Signs packed;
    for (size_t i = 0; i < count; ++i) {
        const unsigned place = 0x80u >> i;
        packed.sign |= scores[i] >= 0 ? place : 0;
        packed.doubt |= std::fabs(scores[i]) > error ? 0 : place;
    }
    return packed;
}

#if defined(__SSE2__) || defined(_M_X64)
// SSE2, which every x86-64 has, packs the first lane lowest; a code has its first bit highest.
constexpr uint8_t kReversed[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

Signs signs_of_eight(const float* scores, float error) {
    const __m128 low = _mm_loadu_ps(scores), high = _mm_loadu_ps(scores + 4);
    const __m128 zero = _mm_setzero_ps(), sign = _mm_set1_ps(-0.0f), bound = _mm_set1_ps(error);
    const auto pack = [](__m128 first, __m128 last) {
        return static_cast<unsigned>(kReversed[_mm_movemask_ps(first)] << 4 |
                                     kReversed[_mm_movemask_ps(last)]);
    };
    return {pack(_mm_cmpge_ps(low, zero), _mm_cmpge_ps(high, zero)),
            pack(_mm_cmpngt_ps(_mm_andnot_ps(sign, low), bound),
                 _mm_cmpngt_ps(_mm_andnot_ps(sign, high), bound))};
}
#else
Signs signs_of_eight(const float* scores, float error) { return signs_of(scores, error, 8); }
#endif

}  // namespace

size_t pack_signs(const float* scores, const float* errors, size_t n, size_t bits, uint8_t* codes,
                  uint8_t* doubtful) {
    const size_t whole = bits / 8, width = (bits + 7) / 8;
    size_t n_doubtful = 0;
    for (size_t row = 0; row < n; ++row) {
        const float* of_row = scores + row * bits;
        for (size_t byte = 0; byte < width; ++byte) {
            const Signs packed = byte < whole
                                     ? signs_of_eight(of_row + 8 * byte, errors[row])
                                     : signs_of(of_row + 8 * byte, errors[row], bits - 8 * whole);
            codes[row * width + byte] = static_cast<uint8_t>(packed.sign);
            doubtful[row * width + byte] = static_cast<uint8_t>(packed.doubt);
            n_doubtful += packed.doubt != 0;
        }
    }
    return n_doubtful;
}

}  // namespace embits
