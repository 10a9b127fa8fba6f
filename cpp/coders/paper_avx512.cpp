// 16 floats at a time. Compiled for AVX-512 with fused multiply-add.
#include <immintrin.h>

#include "coders/paper_loops.h"

namespace embits {
namespace {

struct Floats {
    static constexpr size_t lanes = 16, tile_rows = 12;
    __m512 v;

    static Floats zero() { return {_mm512_setzero_ps()}; }
    static Floats all(float x) { return {_mm512_set1_ps(x)}; }
    static Floats load(const float* from) { return {_mm512_loadu_ps(from)}; }
    static Floats min(Floats a, Floats b) { return {_mm512_min_ps(a.v, b.v)}; }
    static Floats max(Floats a, Floats b) { return {_mm512_max_ps(a.v, b.v)}; }
    static Floats multiply_add(Floats a, Floats b, Floats c) {
        return {_mm512_fmadd_ps(a.v, b.v, c.v)};
    }
    void store(float* to) const { _mm512_storeu_ps(to, v); }
    unsigned not_negative() const {
        return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GE_OQ);
    }
    friend Floats operator+(Floats a, Floats b) { return {_mm512_add_ps(a.v, b.v)}; }
    friend Floats operator-(Floats a, Floats b) { return {_mm512_sub_ps(a.v, b.v)}; }
    friend Floats operator*(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
    friend Floats operator/(Floats a, Floats b) { return {_mm512_div_ps(a.v, b.v)}; }
};

}  // namespace

const PaperKernels kPaperAvx512 = kernels_of<Floats>("avx512");

}  // namespace embits
