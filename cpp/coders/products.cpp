#include "coders/products.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "coders/product_kernels.h"
#include "parallel.h"
#include "search/kernels.h"

namespace embits {
namespace {

constexpr size_t kDepth = 512;                 // of k at a time: a panel of B stays in the cache
constexpr size_t kRowsAPart = 8 * kTileRows;   // rows of C that a thread makes at a time
constexpr size_t kLeastWork = 1 << 20;         // multiplications that are worth a thread

const ProductKernel& kernel() {
#ifdef EMBITS_X86
    const char* name = kernels().name;
    if (!std::strcmp(name, kProductAvx512.name)) return kProductAvx512;
    if (!std::strcmp(name, kProductAvx2.name)) return kProductAvx2;
#endif
    return kProductPortable;
}

size_t rounded_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Columns [first, first + kTileColumns) of B, k groups of kTileColumns, zeros beyond m.
void pack_columns(MatrixView B, size_t k, size_t m, size_t first, float* panel) {
    const size_t count = std::min(kTileColumns, m - first);
    for (size_t i = 0; i < k; ++i, panel += kTileColumns)
        for (size_t j = 0; j < count; ++j)
            panel[j] = B.data[ptrdiff_t(i) * B.row + ptrdiff_t(first + j) * B.column];
}

// Rows [first, first + kTileRows) of A, k groups of kTileRows, zeros beyond n.
void pack_rows(MatrixView A, size_t k, size_t n, size_t first, float* tile) {
    const size_t count = std::min(kTileRows, n - first);
    for (size_t row = 0; row < count; ++row)
        for (size_t i = 0; i < k; ++i)
            tile[i * kTileRows + row] =
                A.data[ptrdiff_t(first + row) * A.row + ptrdiff_t(i) * A.column];
}

// Rows [first, end) of C, from B packed in panels.
void make_rows(const ProductKernel& chosen, MatrixView A, const float* panels, size_t k, size_t m,
               size_t first, size_t end, float* C) {
    const size_t tiles = (end - first + kTileRows - 1) / kTileRows;
    std::vector<float> rows(tiles * kTileRows * k);
    for (size_t tile = 0; tile < tiles; ++tile)
        pack_rows(A, k, end, first + tile * kTileRows, rows.data() + tile * kTileRows * k);
    std::vector<float> sums(tiles * kTileRows * kTileColumns);
    for (size_t column = 0; column < m; column += kTileColumns) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        const float* panel = panels + column * k;
        for (size_t depth = 0; depth < k; depth += kDepth)
            for (size_t tile = 0; tile < tiles; ++tile)
                chosen.add(rows.data() + (tile * k + depth) * kTileRows,
                           panel + depth * kTileColumns, std::min(kDepth, k - depth),
                           sums.data() + tile * kTileRows * kTileColumns);
        const size_t count = std::min(kTileColumns, m - column);
        for (size_t row = first; row < end; ++row)
            std::copy_n(sums.data() + (row - first) * kTileColumns, count, C + row * m + column);
    }
}

}  // namespace

void product(MatrixView A, MatrixView B, size_t n, size_t k, size_t m, float* C,
             unsigned threads) {
    const ProductKernel& chosen = kernel();
    const unsigned used = worthwhile_threads(threads, n * k * m, kLeastWork);
    std::vector<float> panels(rounded_up(m, kTileColumns) * k);
    run_parts(used, static_cast<unsigned>((m + kTileColumns - 1) / kTileColumns),
              [&](unsigned part) {
                  pack_columns(B, k, m, part * kTileColumns,
                               panels.data() + part * kTileColumns * k);
              });
    run_parts(used, static_cast<unsigned>((n + kRowsAPart - 1) / kRowsAPart), [&](unsigned part) {
        const size_t first = part * kRowsAPart;
        make_rows(chosen, A, panels.data(), k, m, first, std::min(n, first + kRowsAPart), C);
    });
}

}  // namespace embits
