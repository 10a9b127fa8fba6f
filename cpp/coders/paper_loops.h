// The loops behind a PaperKernels table, for a vector type V with `lanes` floats.
//
// A product with bits is a sum of some of 16 rows. It is read from four tables, each with the sums
// of all subsets of four rows: a fourth of the additions, and no multiplication.
#pragma once
#include "coders/paper_kernels.h"

namespace embits {
namespace {

template <class V, size_t M, size_t N>
void multiply_tile(const Product& p, size_t row, size_t vector) {
    const float* a = p.a + row * p.a_row;
    const float* b = p.b + vector * V::lanes;
    V sum[M][N];
    for (size_t i = 0; i < M; ++i)
        for (size_t j = 0; j < N; ++j) sum[i][j] = V::zero();
    for (size_t k = 0; k < p.depth; ++k, a += p.a_depth, b += p.b_row) {
        V right[N];
        for (size_t j = 0; j < N; ++j) right[j] = V::load(b + j * V::lanes);
        for (size_t i = 0; i < M; ++i) {
            const V left = V::all(a[i * p.a_row]);
            for (size_t j = 0; j < N; ++j) sum[i][j] = V::multiply_add(left, right[j], sum[i][j]);
        }
    }
    float* c = p.c + row * p.c_row + vector * V::lanes;
    for (size_t i = 0; i < M; ++i)
        for (size_t j = 0; j < N; ++j) sum[i][j].store(c + i * p.c_row + j * V::lanes);
}

template <class V>
void multiply(const Product& p) {
    static_assert(kTileRows % V::tile_rows == 0, "");
    size_t vector = 0;
    for (; vector + 2 <= p.vectors; vector += 2)
        for (size_t row = 0; row < p.rows; row += V::tile_rows)
            multiply_tile<V, V::tile_rows, 2>(p, row, vector);
    if (vector < p.vectors)
        for (size_t row = 0; row < p.rows; row += V::tile_rows)
            multiply_tile<V, V::tile_rows, 1>(p, row, vector);
}

template <class V>
void sign_masks(const float* scores, size_t groups, uint16_t* masks) {
    for (size_t g = 0; g < groups; ++g, scores += kGroup) {
        unsigned mask = 0;
        for (size_t i = 0; i < kGroup; i += V::lanes)
            mask |= V::load(scores + i).not_negative() << i;
        masks[g] = static_cast<uint16_t>(mask);
    }
}

// The sums of all subsets of four rows, for each of four times four rows.
template <class V, size_t N>
struct Tables {
    V sums[4][16][N];

    void fill(const float* rows, size_t stride) {
        for (size_t t = 0; t < 4; ++t)
            for (size_t j = 0; j < N; ++j) {
                const float* first = rows + 4 * t * stride + j * V::lanes;
                sums[t][0][j] = V::zero();
                for (size_t bit = 0; bit < 4; ++bit) {
                    const V row = V::load(first + bit * stride);
                    for (size_t i = 0; i < (size_t{1} << bit); ++i)
                        sums[t][i + (size_t{1} << bit)][j] = sums[t][i][j] + row;
                }
            }
    }

    void add_to(float* out, unsigned chosen) const {
        for (size_t j = 0; j < N; ++j) {
            V sum = V::load(out + j * V::lanes);
            for (size_t t = 0; t < 4; ++t) sum = sum + sums[t][chosen >> (4 * t) & 15][j];
            sum.store(out + j * V::lanes);
        }
    }
};

// tanh by the first nine levels of Lambert's continued fraction, within 1e-5: beyond the limit, the
// fraction would exceed 1.
template <class V>
V tanh_of(V x) {
    x = V::max(V::min(x, V::all(6.25f)), V::all(-6.25f));
    const V s = x * x;
    V over = s + V::all(990);
    over = V::multiply_add(over, s, V::all(135135));
    over = V::multiply_add(over, s, V::all(4729725));
    over = V::multiply_add(over, s, V::all(34459425));
    V under = V::multiply_add(s, V::all(45), V::all(13860));
    under = V::multiply_add(under, s, V::all(945945));
    under = V::multiply_add(under, s, V::all(16216200));
    under = V::multiply_add(under, s, V::all(34459425));
    return x * over / under;
}

template <class V, size_t N>
void reconstruct_block(const Reconstruction& r) {
    for (size_t row = 0; row < r.rows; ++row)
        for (size_t j = 0; j < N; ++j)
            V::load(r.c + j * V::lanes).store(r.delta + row * r.stride + j * V::lanes);
    Tables<V, N> tables;
    for (size_t g = 0; g < r.groups; ++g) {
        tables.fill(r.W + g * kGroup * r.stride, r.stride);
        const uint16_t* codes = r.codes + g * r.code_row;
        for (size_t row = 0; row < r.rows; ++row)
            tables.add_to(r.delta + row * r.stride, codes[row]);
    }
    const V scale = V::all(r.scale), one = V::all(1);
    for (size_t j = 0; j < N; ++j) {
        V loss = V::zero();
        for (size_t row = 0; row < r.rows; ++row) {
            const size_t at = row * r.stride + j * V::lanes;
            const V y = tanh_of(V::load(r.delta + at));
            const V error = y - V::load(r.x + at);
            loss = V::multiply_add(error, error, loss);
            (error * (one - y * y) * scale).store(r.delta + at);
        }
        float sums[V::lanes];
        loss.store(sums);
        for (size_t i = 0; i < V::lanes; ++i) r.losses[j * V::lanes + i] += double{sums[i]};
    }
}

template <class V, size_t N>
void update_block(const Update& u) {
    Tables<V, N> tables;
    for (size_t g = 0; g < u.groups; ++g) {
        tables.fill(u.delta + g * kGroup * u.stride, u.stride);
        for (size_t bit = 0; bit < u.bits; ++bit)
            tables.add_to(u.change + bit * kBlockVectors * V::lanes, u.masks[bit * u.groups + g]);
    }
    const V momentum = V::all(u.momentum);
    for (size_t bit = 0; bit < u.bits; ++bit)
        for (size_t j = 0; j < N; ++j) {
            const size_t at = bit * u.stride + j * V::lanes;
            const V change = V::load(u.change + (bit * kBlockVectors + j) * V::lanes);
            const V velocity = momentum * V::load(u.velocity_W + at) - change;
            velocity.store(u.velocity_W + at);
            (V::load(u.W + at) + velocity).store(u.W_next + at);
        }
    for (size_t j = 0; j < N; ++j) {
        V change = V::zero();
        for (size_t row = 0; row < u.groups * kGroup; ++row)
            change = change + V::load(u.delta + row * u.stride + j * V::lanes);
        const V velocity = momentum * V::load(u.velocity_c + j * V::lanes) - change;
        velocity.store(u.velocity_c + j * V::lanes);
        (V::load(u.c + j * V::lanes) + velocity).store(u.c + j * V::lanes);
    }
}

template <class V>
void reconstruct(const Reconstruction& r) {
    using Block = void (*)(const Reconstruction&);
    static constexpr Block blocks[kBlockVectors] = {
        reconstruct_block<V, 1>, reconstruct_block<V, 2>, reconstruct_block<V, 3>};
    blocks[r.vectors - 1](r);
}

template <class V>
void update(const Update& u) {
    using Block = void (*)(const Update&);
    static constexpr Block blocks[kBlockVectors] = {update_block<V, 1>, update_block<V, 2>,
                                                    update_block<V, 3>};
    blocks[u.vectors - 1](u);
}

template <class V>
constexpr PaperKernels kernels_of() {
    return {V::lanes, multiply<V>, sign_masks<V>, reconstruct<V>, update<V>};
}

}  // namespace
}  // namespace embits
