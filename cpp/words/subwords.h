// fastText's subwords: the n-grams of "<word>" hashed into buckets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace embits {

struct Ngrams {
    int minn, maxn;      // lengths in characters, the marks < and > included
    uint32_t n_buckets;  // 0: there are none
};

// The bucket of each n-gram of a word given as UTF-8 bytes, in fastText's order.
std::vector<uint32_t> ngram_buckets(const char* word, size_t size, const Ngrams& ngrams);

// out[i] = mean of row i of `input` and of the bucket rows of word i, as getWordVector of fastText
// computes it. `input` is (n_input_words + n_buckets, dims) float32 of a mapped file, not aligned. Word i is words[offsets[i]:offsets[i + 1]].
void word_vectors(const char* words, const int64_t* offsets, size_t n_words, const char* input,
                  size_t n_input_words, size_t dims, const Ngrams& ngrams, unsigned threads,
                  float* out);

}  // namespace embits
