#include "words/subwords.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "parallel.h"

namespace embits {
namespace {

// FNV-1a over signed chars: bytes from 0x80 on are sign-extended before the xor. This is a bug in
// fastText that every trained model depends on.
constexpr uint32_t kHashOfNothing = 2166136261u;

uint32_t hash_on(uint32_t h, const char* begin, const char* end) {
    for (; begin < end; ++begin) {
        h ^= static_cast<uint32_t>(static_cast<int8_t>(*begin));
        h *= 16777619u;
    }
    return h;
}

bool continues_character(char c) { return (c & 0xC0) == 0x80; }

// fastText's end of sentence has a row of its own and no n-grams.
bool is_end_of_sentence(const char* word, size_t size) {
    return size == 4 && std::memcmp(word, "</s>", 4) == 0;
}

// Rows of a mapped file may not be aligned, so they are copied before use.
void add_row(const char* input, size_t row, size_t dims, float* scratch, float* sum) {
    std::memcpy(scratch, input + row * dims * sizeof(float), dims * sizeof(float));
    for (size_t d = 0; d < dims; ++d) sum[d] += scratch[d];
}

}  // namespace

std::vector<uint32_t> ngram_buckets(const char* word, size_t size, const Ngrams& ngrams) {
    std::vector<uint32_t> buckets;
    if (ngrams.n_buckets == 0 || is_end_of_sentence(word, size)) return buckets;
    const std::string marked = "<" + std::string(word, size) + ">";
    const char *begin = marked.data(), *end = begin + marked.size();
    for (const char* start = begin; start < end; ++start) {
        if (continues_character(*start)) continue;
        const char* stop = start;
        uint32_t h = kHashOfNothing;
        for (int n = 1; stop < end && n <= ngrams.maxn; ++n) {
            const char* character = stop;
            do ++stop;
            while (stop < end && continues_character(*stop));
            h = hash_on(h, character, stop);
            const bool lone_mark = n == 1 && (start == begin || stop == end);
            if (n >= ngrams.minn && !lone_mark)
                buckets.push_back(h % ngrams.n_buckets);
        }
    }
    return buckets;
}

void word_vectors(const char* words, const int64_t* offsets, size_t n_words, const char* input,
                  size_t n_input_words, size_t dims, const Ngrams& ngrams, unsigned threads,
                  float* out) {
    const auto work = [&](size_t first, size_t last) {
        std::vector<float> scratch(dims);
        for (size_t i = first; i < last; ++i) {
            float* sum = out + i * dims;
            std::fill(sum, sum + dims, 0.0f);
            const auto buckets = ngram_buckets(
                words + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]), ngrams);
            add_row(input, i, dims, scratch.data(), sum);
            for (uint32_t bucket : buckets)
                add_row(input, n_input_words + bucket, dims, scratch.data(), sum);
            const float share = static_cast<float>(1.0 / static_cast<double>(buckets.size() + 1));
            for (size_t d = 0; d < dims; ++d) sum[d] *= share;
        }
    };
    const unsigned parts = std::max(threads, 1u);
    run_parts(parts, parts,
              [&](unsigned p) { work(n_words * p / parts, n_words * (p + 1) / parts); });
}

}  // namespace embits
