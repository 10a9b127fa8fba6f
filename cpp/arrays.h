// NumPy arrays as the bindings take and return them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

using Codes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out2D = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// One query and its answer have one dimension, a batch has two.
template <typename T>
using Batch = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <typename T>
size_t length(const Batch<T>& batch) {
    return batch.ndim() == 1 ? 1 : batch.shape(0);
}

// Hands a vector to NumPy without a copy.
template <typename T>
auto released(std::vector<T>&& run) {
    auto* kept = new std::vector<T>(std::move(run));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}
