// Pooling of token codes: the weighted count of each bit over the tokens of a text.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

struct TokenCodes {
    const uint8_t* codes;  // (n, width), first bit highest
    size_t n, width;
};

// counts[t] = Σ weights[i] × bits of codes[rows[i]] for the tokens i from ends[t - 1] to ends[t] (the
// first text starts at 0); counts is (n_texts, 8 × width). Sums are in the order of the tokens.
// Returns false, and leaves counts unfinished, if a row or an end is out of range.
bool pool_bits(const TokenCodes& table, const uint32_t* rows, const float* weights, size_t n_tokens,
               const int64_t* ends, size_t n_texts, float* counts);

}  // namespace embits
