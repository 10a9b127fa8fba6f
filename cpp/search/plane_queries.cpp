#include "search/plane_queries.h"

#include <algorithm>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

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

}  // namespace

PlaneShape plane_shape(size_t width) {
    PlaneShape shape{width, rounded_up(std::max<size_t>(8 * width, 1), kUnit), 0, 0};
    while (size_t{1} << shape.levels < shape.planes) ++shape.levels;
    shape.record = rounded_up(shape.planes / 2 + 4 * shape.levels, 32);
    return shape;
}

PlaneQueries::PlaneQueries(const PlaneKernel& kernel, size_t width, const uint8_t* codes,
                           size_t count)
    : kernel_(kernel), shape_(plane_shape(width)), count_(count) {
    const size_t vector = kernel.rows / 8;
    const size_t records = rounded_up(count * shape_.record, kAlign);
    const size_t planes = rounded_up(shape_.planes, 128) * vector;
    memory_.resize(kAlign + records + planes + 4 * shape_.planes * vector);
    records_ = memory_.data() + (kAlign - reinterpret_cast<uintptr_t>(memory_.data()) % kAlign);
    planes_ = records_ + records;
    table_ = planes_ + planes;
    for (size_t q = 0; q < count; ++q) set_code(q, codes + q * width);
}

void PlaneQueries::set_code(size_t q, const uint8_t* code) {
    uint8_t* look_ups = records_ + q * shape_.record;
    const auto bit = [&](size_t i) -> unsigned {
        return i < 8 * shape_.width ? code[i / 8] >> (i % 8) & 1u : 0u;
    };
    unsigned parity = bit(0);
    for (size_t i = 1; i < shape_.planes; i += 2) {
        const unsigned b = bit(i), c = bit(i + 1);
        look_ups[i / 2] =
            static_cast<uint8_t>((parity | b << 1 | c << 2) * (kernel_.rows / 64));
        parity ^= b ^ c;
    }
}

void PlaneQueries::set_limit(size_t q, uint32_t limit) {
    uint8_t* record = records_ + q * shape_.record;
    const uint32_t bits = static_cast<uint32_t>(shape_.planes);
    const uint32_t start = (1u << shape_.levels) - std::clamp<uint32_t>(limit, 1, bits);
    // Bit 0 is the third input of the last triple: the last plane has no partner.
    uint8_t& last = record[shape_.planes / 2 - 1];
    const uint8_t third = static_cast<uint8_t>(4 * (kernel_.rows / 64));
    last = static_cast<uint8_t>(last % third + (start & 1 ? third : 0));
    uint32_t* levels = reinterpret_cast<uint32_t*>(record + shape_.planes / 2);
    for (unsigned level = 1; level < shape_.levels; ++level)
        levels[level] = start >> level & 1 ? ~uint32_t{0} : 0;
}

void PlaneQueries::build(const uint8_t* codes, size_t n) {
    kernel_.transpose(codes, shape_, planes_);
    kernel_.tabulate(planes_, shape_, table_);
    // The next block is fetched while the queries search this one.
    const size_t block = kernel_.rows * shape_.width;
    const size_t end = std::min(2 * block, n * shape_.width);
    for (size_t at = block; at < end; at += kAlign) prefetch(codes + at);
}

size_t PlaneQueries::lowest_bit(uint64_t x) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, x);
    return at;
#else
    return static_cast<size_t>(__builtin_ctzll(x));
#endif
}

}  // namespace embits
