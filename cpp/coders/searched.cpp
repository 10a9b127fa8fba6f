#include "coders/searched.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "coders/searched_kernels.h"
#include "parallel.h"
#include "search/kernels.h"

namespace embits {
namespace {

constexpr size_t kRowsAPart = 8 * kRowsAtOnce;

// The kernel that goes with the search's instruction set.
const SearchKernel& kernel() {
#ifdef EMBITS_X86
    const char* name = kernels().name;
    if (!std::strcmp(name, kSearchAvx512.name)) return kSearchAvx512;
    if (!std::strcmp(name, kSearchAvx2.name)) return kSearchAvx2;
#endif
    return kSearchPortable;
}

// Zeros that start on a cache line: a vector load that crosses two lines takes twice as long.
template <class T>
class Aligned {
   public:
    explicit Aligned(size_t size) : room_(size + kLine) {}
    T* data() {
        const size_t past = reinterpret_cast<uintptr_t>(room_.data()) / sizeof(T) % kLine;
        return room_.data() + (kLine - past) % kLine;
    }

   private:
    static constexpr size_t kLine = 64 / sizeof(T);
    std::vector<T> room_;
};

std::vector<int32_t> diagonal_of(const SearchedWeights& coder) {
    std::vector<int32_t> diagonal(padded(coder.bits));
    for (size_t i = 0; i < coder.bits; ++i)
        diagonal[i] = coder.gram[i * padded(coder.bits) + i];
    return diagonal;
}

}  // namespace

void encode_searched(const SearchedWeights& coder, const float* vectors, size_t n,
                     unsigned threads, uint8_t* codes) {
    const SearchKernel& chosen = kernel();
    const size_t width = padded(coder.bits), bytes = (coder.bits + 7) / 8;
    std::vector<int32_t> diagonal = diagonal_of(coder);
    const auto encode_part = [&](unsigned part) {
        Aligned<int16_t> rows(kRowsAtOnce * padded(coder.dims)), signs(kRowsAtOnce * width);
        Aligned<int32_t> scores(kRowsAtOnce * width), product(kRowsAtOnce * width);
        Aligned<int32_t> base(width), mask(width);
        const SearchScratch scratch = {rows.data(),    signs.data(), scores.data(),
                                       product.data(), base.data(),  mask.data(),
                                       diagonal.data()};
        const size_t end = std::min(n, (part + size_t(1)) * kRowsAPart);
        for (size_t row = part * kRowsAPart; row < end; row += kRowsAtOnce)
            chosen.encode(coder, vectors + row * coder.dims, std::min(kRowsAtOnce, end - row),
                          scratch, codes + row * bytes);
    };
    const size_t parts = (n + kRowsAPart - 1) / kRowsAPart;
    run_parts(worthwhile_threads(threads, parts, 1), static_cast<unsigned>(parts), encode_part);
}

}  // namespace embits
