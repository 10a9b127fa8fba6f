// Four floats at a time, in plain C++. Compilers for ARM make NEON instructions of it.
#include <cmath>

#include "coders/paper_loops.h"

namespace embits {
namespace {

// a b + c, rounded once where the processor has an instruction for it. An x86 that runs this file
// has none, and its results differ from those of the others in the last digits.
float fused(float a, float b, float c) {
#ifdef EMBITS_X86
    return a * b + c;
#else
    return std::fma(a, b, c);
#endif
}

struct Floats {
    static constexpr size_t lanes = 4, tile_rows = 6;
    float v[lanes];

    template <class F>
    static Floats make(F of) {
        Floats made;
        for (size_t i = 0; i < lanes; ++i) made.v[i] = of(i);
        return made;
    }
    static Floats zero() { return all(0); }
    static Floats all(float x) { return make([=](size_t) { return x; }); }
    static Floats load(const float* from) { return make([=](size_t i) { return from[i]; }); }
    static Floats min(Floats a, Floats b) {
        return make([&](size_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
    }
    static Floats max(Floats a, Floats b) {
        return make([&](size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
    }
    static Floats multiply_add(Floats a, Floats b, Floats c) {
        return make([&](size_t i) { return fused(a.v[i], b.v[i], c.v[i]); });
    }
    void store(float* to) const {
        for (size_t i = 0; i < lanes; ++i) to[i] = v[i];
    }
    unsigned not_negative() const {
        unsigned mask = 0;
        for (size_t i = 0; i < lanes; ++i) mask |= unsigned{v[i] >= 0} << i;
        return mask;
    }
    friend Floats operator+(Floats a, Floats b) {
        return make([&](size_t i) { return a.v[i] + b.v[i]; });
    }
    friend Floats operator-(Floats a, Floats b) {
        return make([&](size_t i) { return a.v[i] - b.v[i]; });
    }
    friend Floats operator*(Floats a, Floats b) {
        return make([&](size_t i) { return a.v[i] * b.v[i]; });
    }
    friend Floats operator/(Floats a, Floats b) {
        return make([&](size_t i) { return a.v[i] / b.v[i]; });
    }
};

}  // namespace

const PaperKernels kPaperPortable = kernels_of<Floats>();

}  // namespace embits
