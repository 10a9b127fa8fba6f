// Python bindings, and nothing else: shapes are checked in Python, work is done in embits_core.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <array>
#include <atomic>
#include <optional>

#include "arrays.h"
#include "coders/least_squares.h"
#include "coders/net.h"
#include "coders/paper.h"
#include "coders/products.h"
#include "coders/searched.h"
#include "coders/signs.h"
#include "module_readers.h"
#include "search/asymmetric.h"
#include "search/cells.h"
#include "search/filter.h"
#include "search/kernels.h"
#include "search/multi_index.h"
#include "search/pairs.h"
#include "search/path.h"
#include "search/top_k.h"

// What the coders use.
static void bind_coders(nb::module_& m) {
    m.def(
        "pack_signs",
        [](Out2D<const float> scores, Array<const float> errors, Out2D<uint8_t> codes,
           Out2D<uint8_t> doubtful) {
            nb::gil_scoped_release release;
            return embits::pack_signs(scores.data(), errors.data(), scores.shape(0),
                                      scores.shape(1), codes.data(), doubtful.data());
        },
        "scores"_a.noconvert(), "errors"_a.noconvert(), "codes"_a.noconvert(),
        "doubtful"_a.noconvert());
    using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
    m.def(
        "product",
        [](Matrix a, Matrix b, unsigned threads, Out2D<float> out) {
            nb::gil_scoped_release release;
            embits::product({a.data(), a.stride(0), a.stride(1)},
                            {b.data(), b.stride(0), b.stride(1)}, a.shape(0), a.shape(1),
                            b.shape(1), out.data(), threads);
        },
        "a"_a.noconvert(), "b"_a.noconvert(), "threads"_a, "out"_a.noconvert());
    m.def(
        "solve_positive",
        [](Out2D<double> matrix, Out2D<double> sides) {
            nb::gil_scoped_release release;
            return embits::solve_positive(matrix.data(), sides.shape(0), sides.data(),
                                          sides.shape(1));
        },
        "matrix"_a.noconvert(), "sides"_a.noconvert());
    m.def(
        "encode_searched",
        [](Out2D<const float> vectors, Out2D<const int16_t> weights, Array<const int32_t> thresholds,
           Out2D<const int16_t> gram, Array<const int32_t> centre, unsigned shift, int32_t offset,
           int32_t length, float pull, unsigned sweeps, unsigned threads, Out2D<uint8_t> codes) {
            const embits::SearchedWeights coder = {
                vectors.shape(1), thresholds.shape(0), weights.data(), thresholds.data(),
                gram.data(), centre.data(), shift, offset, length, pull, sweeps};
            nb::gil_scoped_release release;
            embits::encode_searched(coder, vectors.data(), vectors.shape(0), threads, codes.data());
        },
        "vectors"_a.noconvert(), "weights"_a.noconvert(), "thresholds"_a.noconvert(),
        "gram"_a.noconvert(), "centre"_a.noconvert(), "shift"_a, "offset"_a, "length"_a, "pull"_a,
        "sweeps"_a, "threads"_a, "codes"_a.noconvert());
    m.def(
        "train_paper",
        [](Out2D<const float> X, Array<const int64_t> order, Out2D<float> W, Array<float> c,
           Out2D<float> velocity_W, Array<float> velocity_c, size_t batch_size, float learning_rate,
           float momentum, float lambda, Array<const float> mean, float scale, bool clip,
           unsigned threads) {
            nb::gil_scoped_release release;
            return embits::train_paper(
                {W.shape(0), W.shape(1), W.data(), c.data(), velocity_W.data(), velocity_c.data()},
                X.data(), order.data(), order.shape(0),
                {batch_size, learning_rate, momentum, lambda, mean.data(), scale, clip, threads});
        },
        "X"_a.noconvert(), "order"_a.noconvert(), "W"_a.noconvert(), "c"_a.noconvert(),
        "velocity_W"_a.noconvert(), "velocity_c"_a.noconvert(), "batch_size"_a, "learning_rate"_a,
        "momentum"_a, "lambda_reg"_a, "mean"_a.noconvert(), "scale"_a, "clip"_a, "threads"_a);
}

// The weights of a net that decodes bits, which it keeps alive: int8 matrices and their scales.
struct Net {
    using Weights = Out2D<const int8_t>;
    using Scales = Array<const float>;
    Net(std::vector<Weights> matrices, std::vector<Scales> scales, size_t hidden)
        : matrices(std::move(matrices)), scales(std::move(scales)) {
        const auto& m = this->matrices;
        const auto& s = this->scales;
        weights = {s[6].shape(0), s[4].shape(0), hidden,      m[0].data(),  m[1].data(),
                   m[2].data(),   m[3].data(),   m[4].data(), m[5].data(),  m[6].data(),
                   s[0].data(),   s[1].data(),   s[2].data(), s[3].data(),  s[4].data(),
                   s[5].data(),   s[6].data()};
    }

    std::vector<Weights> matrices;
    std::vector<Scales> scales;
    embits::NetWeights weights;
};

static void bind_net(nb::module_& m) {
    m.def(
        "unit_rows",
        [](Out2D<const float> rows, Out2D<float> out) {
            nb::gil_scoped_release release;
            embits::unit_rows(rows.data(), rows.shape(0), rows.shape(1), out.data());
        },
        "rows"_a.noconvert(), "out"_a.noconvert());
    nb::class_<Net>(m, "Net")
        .def(nb::init<std::vector<Net::Weights>, std::vector<Net::Scales>, size_t>(),
             "matrices"_a, "scales"_a, "hidden"_a)
        .def(
            "decode",
            [](const Net& self, Codes codes, unsigned threads, Out2D<float> vectors) {
                nb::gil_scoped_release release;
                embits::decode_net(self.weights, codes.data(), codes.shape(0), threads,
                                   vectors.data());
            },
            "codes"_a.noconvert(), "threads"_a, "vectors"_a.noconvert())
        .def(
            "search",
            [](const Net& self, Out2D<const float> unit, Out2D<const float> pulls, unsigned rounds,
               unsigned tries, unsigned threads, Out2D<uint8_t> codes) {
                nb::gil_scoped_release release;
                embits::search_net(self.weights, unit.data(), pulls.data(), codes.shape(0), rounds,
                                   tries, threads, codes.data());
            },
            "unit"_a.noconvert(), "pulls"_a.noconvert(), "rounds"_a, "tries"_a, "threads"_a,
            "codes"_a.noconvert());
}

// A filter reads the arrays it was made from, and keeps them alive. `numbers` are rows or a mask,
// (1, n), or the addresses of several masks, (q, 1), which the caller keeps alive.
static void bind_filters(nb::module_& m) {
    using embits::Filter;
    nb::class_<Filter>(m, "Filter")
        .def(
            "__init__",
            [](Filter* self, Out2D<const uint64_t> numbers, Array<const int64_t> starts,
               size_t count, bool is_mask) {
                Filter filter;
                filter.count = count;
                if (is_mask) {
                    (numbers.shape(0) == 1 ? filter.mask : filter.masks) = numbers.data();
                } else {
                    filter.rows = reinterpret_cast<const int64_t*>(numbers.data());
                    filter.starts = starts.shape(0) == 0 ? nullptr : starts.data();
                }
                new (self) Filter(filter);
            },
            "numbers"_a.noconvert(), "starts"_a.noconvert(), "count"_a, "is_mask"_a,
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
    m.def(
        "mask_rows",
        [](Array<const uint64_t> mask, Array<int64_t> rows) {
            embits::mask_rows(mask.data(), mask.shape(0), rows.data());
        },
        "mask"_a.noconvert(), "rows"_a.noconvert());
}

// Codes in several arrays, which it keeps alive. Those in the order of cells have the row of each
// code, and the starts of the cells if these are read one by one; the others empty arrays.
struct CodePieces {
    using Numbers = std::vector<Array<const uint32_t>>;

    CodePieces(std::vector<Codes> codes, Numbers rows, Numbers starts)
        : arrays(std::move(codes)), orders(std::move(rows)), cells(std::move(starts)) {
        size_t start = 0;
        for (size_t i = 0; i < arrays.size(); ++i) {
            const bool has_order = orders[i].shape(0) > 0, has_cells = cells[i].shape(0) > 0;
            width = arrays[i].shape(1);
            if (arrays[i].shape(0))
                pieces.push_back({arrays[i].data(), start, has_order ? orders[i].data() : nullptr,
                                  has_cells ? cells[i].data() : nullptr});
            start += arrays[i].shape(0);
        }
        pieces.push_back({nullptr, start});
    }

    std::vector<Codes> arrays;
    Numbers orders, cells;
    std::vector<embits::CodeRows::Piece> pieces;
    size_t width = 0;
};

static embits::CodeRows rows_of(const Codes& codes) { return codes.data(); }
static embits::CodeRows rows_of(const CodePieces& codes) {
    return embits::CodeRows(codes.pieces);
}
static size_t count_of(const Codes& codes) { return codes.shape(0); }
static size_t count_of(const CodePieces& codes) { return codes.pieces.back().start; }
static size_t width_of(const Codes& codes) { return codes.shape(1); }
static size_t width_of(const CodePieces& codes) { return codes.width; }

// What some queries read of cells, and how many rows they have read.
struct CellQueries {
    CellQueries(const embits::CellCenters& centers, Out2D<const float> weights,
                Array<const uint32_t> probes, std::array<float, 4> margins,
                Array<const float> longest, Array<const uint64_t> most_rows, Array<uint8_t> gave_up)
        : centers(centers), weights(weights), probes(probes), longest(longest),
          most_rows(most_rows), gave_up(gave_up), margins(margins) {}

    const embits::CellCenters& centers;
    Out2D<const float> weights;
    Array<const uint32_t> probes;
    Array<const float> longest;
    Array<const uint64_t> most_rows;
    Array<uint8_t> gave_up;
    std::array<float, 4> margins;  // margin, far_margin, near, far
    std::atomic<size_t> rows_read{0};
};

static std::optional<embits::CellReading> reading_of(CellQueries* cells,
                                                     const float* offsets = nullptr) {
    if (!cells) return std::nullopt;
    return embits::CellReading{cells->centers,
                               cells->weights.data(),
                               cells->probes.shape(0) ? cells->probes.data() : nullptr,
                               cells->margins[0],
                               cells->margins[1],
                               cells->margins[2],
                               cells->margins[3],
                               cells->most_rows.shape(0) ? cells->most_rows.data() : nullptr,
                               cells->gave_up.data(),
                               offsets ? cells->longest.data() : nullptr,
                               offsets,
                               cells->rows_read};
}

// The searches of codes in one array, or in several.
template <class AnyCodes>
static void bind_searches(nb::module_& m) {
    using embits::Filter;
    m.def(
        "top_k",
        [](AnyCodes codes, Batch<const uint8_t> queries, size_t k, unsigned threads,
           Batch<int32_t> distances, Batch<int64_t> rows, const Filter* filter,
           CellQueries* cells) {
            const auto reading = reading_of(cells);
            nb::gil_scoped_release release;
            embits::top_k(rows_of(codes), count_of(codes), width_of(codes), queries.data(),
                          length(queries), k, threads, distances.data(), rows.data(),
                          filter ? *filter : Filter{}, reading ? &*reading : nullptr);
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "threads"_a,
        "distances"_a.noconvert(), "rows"_a.noconvert(), "filter"_a = nb::none(),
        "cells"_a = nb::none());
    m.def(
        "asymmetric_top_k",
        [](AnyCodes codes, Batch<const float> queries, size_t k, unsigned threads,
           Batch<float> scores, Batch<int64_t> rows, const Filter* filter,
           std::optional<Array<const float>> lengths, std::optional<Array<const float>> offsets,
           CellQueries* cells) {
            embits::RowLengths of;
            if (lengths && offsets) of = {lengths->data(), offsets->data()};
            const auto reading = reading_of(cells, of.offsets);
            nb::gil_scoped_release release;
            embits::asymmetric_top_k(rows_of(codes), count_of(codes), width_of(codes),
                                     queries.data(), length(queries),
                                     queries.shape(queries.ndim() - 1), k, threads, scores.data(),
                                     rows.data(), filter ? *filter : Filter{}, of,
                                     reading ? &*reading : nullptr);
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "k"_a, "threads"_a, "scores"_a.noconvert(),
        "rows"_a.noconvert(), "filter"_a = nb::none(), "lengths"_a.noconvert() = nb::none(),
        "offsets"_a.noconvert() = nb::none(), "cells"_a = nb::none());
    m.def(
        "within",
        [](AnyCodes codes, Batch<const uint8_t> queries, uint32_t distance, size_t max_found,
           unsigned threads, const Filter* filter) {
            embits::RowsWithin found;
            {
                nb::gil_scoped_release release;
                found = embits::within(rows_of(codes), count_of(codes), width_of(codes),
                                       queries.data(), length(queries), distance, max_found,
                                       threads, filter ? *filter : Filter{});
            }
            return nb::make_tuple(released(std::move(found.offsets)),
                                  released(std::move(found.keys)));
        },
        "codes"_a.noconvert(), "queries"_a.noconvert(), "distance"_a, "max_found"_a, "threads"_a,
        "filter"_a = nb::none());
}

// What the search uses. .noconvert(): an output array must never be a silent copy.
static void bind_search(nb::module_& m) {
    m.def("simd", [] { return embits::kernels().name; });
    m.def("use_simd", [](const char* name) { embits::use_kernels(name); }, "name"_a);
    m.def("path", [] { return embits::last_path(); });
    m.def("use_path", [](const char* name) { embits::use_path(name); }, "name"_a);
    m.def("available_simd", [] {
        nb::list names;
        for (auto table = embits::available_kernels(); *table; ++table) names.append((*table)->name);
        return names;
    });
    nb::class_<CodePieces>(m, "CodePieces")
        .def(nb::init<std::vector<Codes>, CodePieces::Numbers, CodePieces::Numbers>(), "arrays"_a,
             "orders"_a, "cells"_a);
    bind_searches<Codes>(m);
    bind_searches<const CodePieces&>(m);
    m.def(
        "pairs_in_buckets",
        [](Codes codes, Array<const int64_t> buckets, uint32_t distance, Codes masks,
           unsigned threads) {
            std::vector<int64_t> found;
            {
                nb::gil_scoped_release release;
                found = embits::pairs_in_buckets(codes.data(), codes.shape(1), buckets.data(),
                                                 buckets.shape(0) / 2, distance, masks.data(),
                                                 masks.shape(0), threads);
            }
            return released(std::move(found));
        },
        "codes"_a.noconvert(), "buckets"_a.noconvert(), "distance"_a, "masks"_a.noconvert(),
        "threads"_a);
    // The index reads the codes it was made from: the object keeps their array alive.
    nb::class_<embits::MultiIndex>(m, "MultiIndex")
        .def(
            "__init__",
            [](embits::MultiIndex* self, Codes codes, unsigned n_chunks) {
                nb::gil_scoped_release release;
                new (self)
                    embits::MultiIndex(codes.data(), codes.shape(0), codes.shape(1), n_chunks);
            },
            "codes"_a.noconvert(), "n_chunks"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("bytes", &embits::MultiIndex::bytes)
        .def(
            "top_k",
            [](const embits::MultiIndex& self, Batch<const uint8_t> queries, size_t k,
               unsigned threads, Batch<int32_t> distances, Batch<int64_t> rows,
               const embits::Filter* filter) {
                nb::gil_scoped_release release;
                return self.top_k(queries.data(), length(queries), k, threads, distances.data(),
                                  rows.data(), filter ? *filter : embits::Filter{});
            },
            "queries"_a.noconvert(), "k"_a, "threads"_a, "distances"_a.noconvert(),
            "rows"_a.noconvert(), "filter"_a = nb::none());
}

static void bind_cells(nb::module_& m) {
    using embits::CellCenters;
    nb::class_<CellCenters>(m, "CellCenters")
        .def(
            "__init__",
            [](CellCenters* self, Out2D<const int8_t> centers) {
                new (self) CellCenters(centers.data(), centers.shape(0), centers.shape(1));
            },
            "centers"_a.noconvert())
        .def(
            "assign",
            [](const CellCenters& self, Codes codes, unsigned threads, Array<uint32_t> cells) {
                nb::gil_scoped_release release;
                self.assign(codes.data(), codes.shape(0), threads, cells.data());
            },
            "codes"_a.noconvert(), "threads"_a, "cells"_a.noconvert())
        .def(
            "products",
            [](const CellCenters& self, Out2D<const float> z, Out2D<float> out) {
                self.products(z.data(), z.shape(0), out.data());
            },
            "weights"_a.noconvert(), "out"_a.noconvert())
        .def("place_costs", [](const CellCenters& self) {
            return released(std::vector<float>(self.place_costs()));
        })
        .def("squares", [](const CellCenters& self) {
            return released(std::vector<float>(self.squares()));
        });
    nb::class_<CellQueries>(m, "CellQueries")
        .def(nb::init<const CellCenters&, Out2D<const float>, Array<const uint32_t>,
                      std::array<float, 4>, Array<const float>, Array<const uint64_t>,
                      Array<uint8_t>>(),
             "centers"_a, "weights"_a.noconvert(), "probes"_a.noconvert(), "margins"_a,
             "longest"_a.noconvert(), "most_rows"_a.noconvert(), "gave_up"_a.noconvert(),
             nb::keep_alive<1, 2>())
        .def_prop_ro("rows_read", [](const CellQueries& self) { return self.rows_read.load(); });
    m.def(
        "train_cells",
        [](Codes codes, uint64_t seed, unsigned threads, Out2D<int8_t> centers) {
            nb::gil_scoped_release release;
            embits::train_cells(codes.data(), codes.shape(0), centers.shape(1), centers.shape(0),
                                seed, threads, centers.data());
        },
        "codes"_a.noconvert(), "seed"_a, "threads"_a, "centers"_a.noconvert());
}

NB_MODULE(_core, m) {
    // What a daemon thread still uses at the end of the process is not freed: that is no mistake.
    nb::set_leak_warnings(false);
    m.attr("nanobind_version") =
        NB_TOSTRING(NB_VERSION_MAJOR) "." NB_TOSTRING(NB_VERSION_MINOR) "." NB_TOSTRING(NB_VERSION_PATCH);
    bind_readers(m);
    bind_words(m);
    bind_coders(m);
    bind_net(m);
    bind_filters(m);
    bind_search(m);
    bind_cells(m);
}
