#pragma once
#include <cstddef>

namespace embits {

// Solves A X = B for a symmetric, positive definite A of n x n and B of n x columns; X takes the
// place of B, and A is overwritten. Every sum is made in a fixed order, so the solution does not
// depend on threads or instruction sets. Returns false where A is not positive definite.
bool solve_positive(double* A, size_t n, double* B, size_t columns);

}  // namespace embits
