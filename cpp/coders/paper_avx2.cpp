// 8 floats at a time. Compiled for AVX2 with fused multiply-add.
#include <immintrin.h>

#include "coders/paper_loops.h"

namespace embits {
namespace {

struct Floats {
    static constexpr size_t lanes = 8, tile_rows = 6;
    __m256 v;

    static Floats zero() { return {_mm256_setzero_ps()}; }
    static Floats all(float x) { return {_mm256_set1_ps(x)}; }
    static Floats load(const float* from) { return {_mm256_loadu_ps(from)}; }
    static Floats min(Floats a, Floats b) { return {_mm256_min_ps(a.v, b.v)}; }
    static Floats max(Floats a, Floats b) { return {_mm256_max_ps(a.v, b.v)}; }
    static Floats multiply_add(Floats a, Floats b, Floats c) {
        return {_mm256_fmadd_ps(a.v, b.v, c.v)};
    }
    void store(float* to) const { _mm256_storeu_ps(to, v); }
    unsigned not_negative() const {
        return static_cast<unsigned>(
            _mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GE_OQ)));
    }
    friend Floats operator+(Floats a, Floats b) { return {_mm256_add_ps(a.v, b.v)}; }
    friend Floats operator-(Floats a, Floats b) { return {_mm256_sub_ps(a.v, b.v)}; }
    friend Floats operator*(Floats a, Floats b) { return {_mm256_mul_ps(a.v, b.v)}; }
    friend Floats operator/(Floats a, Floats b) { return {_mm256_div_ps(a.v, b.v)}; }
};

}  // namespace

const PaperKernels kPaperAvx2 = kernels_of<Floats>();

}  // namespace embits
