// The arrays that Python passes to the native code, and the functions that bind a part of it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

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

void bind_coders(nb::module_& m);
void bind_words(nb::module_& m);
