#include <cstring>

#include "kernels.h"

namespace embits {
namespace {

int popcount64(uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<int>((x * 0x0101010101010101u) >> 56);
}

int32_t hamming(const uint8_t* a, const uint8_t* b, size_t width) {
    int32_t sum = 0;
    size_t i = 0;
    for (; i + 8 <= width; i += 8) {
        uint64_t x, y;
        std::memcpy(&x, a + i, 8);
        std::memcpy(&y, b + i, 8);
        sum += popcount64(x ^ y);
    }
    for (; i < width; ++i) sum += popcount64(static_cast<uint64_t>(a[i] ^ b[i]));
    return sum;
}

void distances(const uint8_t* codes, size_t n, size_t width, const uint8_t* query, int32_t* out) {
    for (size_t i = 0; i < n; ++i) out[i] = hamming(codes + i * width, query, width);
}

}  // namespace

const Kernels kPortable = {"portable", distances};

}  // namespace embits
