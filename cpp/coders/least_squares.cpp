// Cholesky's decomposition, A = L L^T. The build forbids fused operations for this file.
#include "coders/least_squares.h"

#include <cmath>

namespace embits {
namespace {

constexpr size_t kSums = 8;

double dot(const double* a, const double* b, size_t n) {
    double sums[kSums] = {};
    size_t i = 0;
    for (; i + kSums <= n; i += kSums)
        for (size_t lane = 0; lane < kSums; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    double total = 0;
    for (double sum : sums) total += sum;
    for (; i < n; ++i) total += a[i] * b[i];
    return total;
}

void subtract(double* from, double factor, const double* row, size_t n) {
    for (size_t i = 0; i < n; ++i) from[i] -= factor * row[i];
}

void divide(double* row, double by, size_t n) {
    for (size_t i = 0; i < n; ++i) row[i] /= by;
}

bool decompose(double* A, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        double* row = A + i * n;
        for (size_t j = 0; j < i; ++j) {
            const double* other = A + j * n;
            row[j] = (row[j] - dot(row, other, j)) / other[j];
        }
        const double squared = row[i] - dot(row, row, i);
        if (!(squared > 0)) return false;
        row[i] = std::sqrt(squared);
    }
    return true;
}

}  // namespace

bool solve_positive(double* A, size_t n, double* B, size_t columns) {
    if (!decompose(A, n)) return false;
    for (size_t i = 0; i < n; ++i) {  // L Z = B
        double* row = B + i * columns;
        for (size_t j = 0; j < i; ++j) subtract(row, A[i * n + j], B + j * columns, columns);
        divide(row, A[i * n + i], columns);
    }
    for (size_t i = n; i-- > 0;) {  // L^T X = Z
        double* row = B + i * columns;
        for (size_t j = i + 1; j < n; ++j) subtract(row, A[j * n + i], B + j * columns, columns);
        divide(row, A[i * n + i], columns);
    }
    return true;
}

}  // namespace embits
