#include "text/pooling.h"

#include <algorithm>

namespace embits {
namespace {

// The eight bits of each byte as floats: one row of it is a vector register.
struct BitsOfBytes {
    alignas(64) float of[256][8];
    BitsOfBytes() {
        for (int byte = 0; byte < 256; ++byte)
            for (int bit = 0; bit < 8; ++bit) of[byte][bit] = static_cast<float>(byte >> (7 - bit) & 1);
    }
};

}  // namespace

bool pool_bits(const TokenCodes& table, const uint32_t* rows, const float* weights, size_t n_tokens,
               const int64_t* ends, size_t n_texts, float* counts) {
    static const BitsOfBytes bits;
    const size_t n_bits = 8 * table.width;
    int64_t token = 0;
    for (size_t text = 0; text < n_texts; ++text) {
        float* sums = counts + text * n_bits;
        std::fill(sums, sums + n_bits, 0.0f);
        if (ends[text] < token || ends[text] > static_cast<int64_t>(n_tokens)) return false;
        for (; token < ends[text]; ++token) {
            if (rows[token] >= table.n) return false;
            const uint8_t* code = table.codes + rows[token] * table.width;
            const float weight = weights[token];
            for (size_t byte = 0; byte < table.width; ++byte) {
                const float* is_set = bits.of[code[byte]];
                for (int bit = 0; bit < 8; ++bit) sums[8 * byte + bit] += weight * is_set[bit];
            }
        }
    }
    return true;
}

}  // namespace embits
