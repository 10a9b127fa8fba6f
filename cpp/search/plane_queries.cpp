#include "search/plane_queries.h"

#include <algorithm>

namespace embits {
namespace {

constexpr size_t kAlign = 64;

size_t rounded_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

void prefetch(const uint8_t* address) {
#if defined(_MSC_VER)
    (void)address;
#else
    __builtin_prefetch(address, 0, 2);
#endif
}

PlaneShape plane_shape(size_t width, unsigned levels_of_unit, size_t bytes_of_unit) {
    const size_t units = rounded_up(std::max<size_t>(8 * width, 1), kUnit) / kUnit;
    PlaneShape shape{width, units * kUnit, levels_of_unit, 0, units * bytes_of_unit};
    while (size_t{1} << (shape.levels - levels_of_unit) < units) ++shape.levels;
    shape.record = rounded_up(shape.start + 4 * shape.levels, 32);
    return shape;
}

}  // namespace

PlaneBatch::PlaneBatch(const PlaneKernel& kernel, size_t width, size_t count,
                       unsigned levels_of_unit, size_t bytes_of_unit, size_t vectors)
    : kernel_(kernel), shape_(plane_shape(width, levels_of_unit, bytes_of_unit)), count_(count) {
    const size_t records = rounded_up(count * shape_.record, kAlign);
    const size_t planes = rounded_up(shape_.planes, 128) * vector();
    memory_.resize(kAlign + records + planes + vectors * vector());
    records_ = memory_.data() + (kAlign - reinterpret_cast<uintptr_t>(memory_.data()) % kAlign);
    planes_ = records_ + records;
    vectors_ = planes_ + planes;
}

void PlaneBatch::set_limit(size_t q, uint32_t limit) {
    const uint32_t end = 1u << shape_.levels;
    const uint32_t start = end - std::clamp<uint32_t>(limit, 1, end);
    uint32_t* levels = reinterpret_cast<uint32_t*>(record(q) + shape_.start);
    for (unsigned level = 0; level < shape_.levels; ++level)
        levels[level] = start >> level & 1 ? ~uint32_t{0} : 0;
}

void PlaneBatch::transpose(const uint8_t* codes, size_t n) {
    kernel_.transpose(codes, shape_, planes_);
    // The next block is fetched while the queries search this one.
    const size_t block = kernel_.rows * shape_.width;
    const size_t end = std::min(2 * block, n * shape_.width);
    for (size_t at = block; at < end; at += kAlign) prefetch(codes + at);
}

// ---- Hamming distance

PlaneQueries::PlaneQueries(const PlaneKernel& kernel, size_t width, const uint8_t* codes,
                           size_t count)
    : PlaneBatch(kernel, width, count, 6, kUnit / 2, 4 * rounded_up(8 * width, kUnit)) {
    for (size_t q = 0; q < count; ++q) set_code(q, codes + q * width);
}

void PlaneQueries::set_code(size_t q, const uint8_t* code) {
    const auto bit = [&](size_t i) -> unsigned {
        return i < 8 * shape_.width ? code[i / 8] >> (i % 8) & 1u : 0u;
    };
    unsigned parity = bit(0);
    for (size_t i = 1; i < shape_.planes; i += 2) {
        const unsigned b = bit(i), c = bit(i + 1);
        record(q)[i / 2] = static_cast<uint8_t>((parity | b << 1 | c << 2) * (vector() / 8));
        parity ^= b ^ c;
    }
}

void PlaneQueries::set_limit(size_t q, uint32_t limit) {
    limit = std::clamp<uint32_t>(limit, 1, static_cast<uint32_t>(shape_.planes));
    PlaneBatch::set_limit(q, limit);
    // The lowest bit of the start value is that of -limit.
    uint8_t& last = record(q)[shape_.planes / 2 - 1];
    const uint8_t third = static_cast<uint8_t>(4 * (vector() / 8));
    last = static_cast<uint8_t>(last % third + (limit & 1 ? third : 0));
}

void PlaneQueries::build(const uint8_t* codes, size_t n) {
    transpose(codes, n);
    kernel_.tabulate(planes_, shape_, vectors_);
}

// ---- Weighted distance

WeightedPlaneQueries::WeightedPlaneQueries(const PlaneKernel& kernel, size_t width, size_t count)
    : PlaneBatch(kernel, width, count, kWeightLevels, 2 * kWeighted,
                 2 * rounded_up(8 * width, kUnit) + 1),
      queries_(count), hits_(kernel.rows) {}

void WeightedPlaneQueries::set_query(size_t q, const RankedBits& bits, WeightedQuery fine) {
    queries_[q].query = fine;
    uint16_t* places = reinterpret_cast<uint16_t*>(record(q));
    for (uint16_t place : bits.places) *places++ = static_cast<uint16_t>(place * (vector() / 8));
}

void WeightedPlaneQueries::build(const uint8_t* codes, size_t n) {
    transpose(codes, n);
    kernel_.pair(planes_, shape_, vectors_);
    codes_ = codes;
}

}  // namespace embits
