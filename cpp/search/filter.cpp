#include "search/filter.h"

#include <cstring>

#include "search/words.h"

namespace embits {
namespace {

// How far ahead codes are fetched, in rows and in bytes. Into the second-level cache: it waits for
// more lines at a time than the first, which made copies twice as fast (measured).
constexpr size_t kRowsAhead = 128, kBytesAhead = 64 << 10;
constexpr size_t kLine = 64;

void prefetch(const uint8_t* address) {
#if defined(_MSC_VER)
    (void)address;
#else
    __builtin_prefetch(address, 0, 2);
#endif
}

template <size_t Width>
struct Fixed {
    void copy(uint8_t* to, const uint8_t* from) const { std::memcpy(to, from, Width); }
    size_t width() const { return Width; }
};

// Copies eight bytes at a time: memcpy of an unknown length is a function call.
struct Any {
    size_t bytes;

    void copy(uint8_t* to, const uint8_t* from) const {
        size_t i = 0;
        for (; i + 8 <= bytes; i += 8) std::memcpy(to + i, from + i, 8);
        for (; i < bytes; ++i) to[i] = from[i];
    }
    size_t width() const { return bytes; }
};

template <class Code>
void gather_codes(const uint8_t* codes, int64_t first, const Code& code, const int64_t* rows,
                  size_t size, size_t left, uint8_t* to) {
    const size_t width = code.width();
    const size_t ahead = std::min(kRowsAhead, kBytesAhead / width);
    const auto code_of = [&](size_t i) {
        return codes + static_cast<size_t>(rows[i] - first) * width;
    };
    for (size_t i = 0; i < size; ++i) {
        const uint8_t* later = code_of(std::min(i + ahead, left - 1));
        for (size_t at = 0; at < width; at += kLine) prefetch(later + at);
        prefetch(later + width - 1);
        code.copy(to + i * width, code_of(i));
    }
}

}  // namespace

void gather(const uint8_t* codes, int64_t first, size_t width, const int64_t* rows, size_t size,
            size_t left, uint8_t* to) {
    if (width == 0) return;
    if (width == 8) return gather_codes(codes, first, Fixed<8>{}, rows, size, left, to);
    if (width == 16) return gather_codes(codes, first, Fixed<16>{}, rows, size, left, to);
    if (width == 32) return gather_codes(codes, first, Fixed<32>{}, rows, size, left, to);
    if (width == 64) return gather_codes(codes, first, Fixed<64>{}, rows, size, left, to);
    gather_codes(codes, first, Any{width}, rows, size, left, to);
}

bool allows_any(const uint64_t* mask, size_t row, size_t size) {
    if (!mask) return true;
    const size_t first = row / 64, last = (row + size - 1) / 64;
    const uint64_t head = ~uint64_t{0} << row % 64;
    const uint64_t tail = ~uint64_t{0} >> (63 - (row + size - 1) % 64);
    if (first == last) return mask[first] & head & tail;
    if (mask[first] & head) return true;
    for (size_t word = first + 1; word < last; ++word)
        if (mask[word]) return true;
    return mask[last] & tail;
}

void copy_mask(const uint64_t* mask, size_t row, size_t n, uint64_t* to) {
    const size_t shift = row % 64;
    mask += row / 64;
    for (size_t i = 0; i < n; ++i)
        to[i] = shift ? mask[i] >> shift | mask[i + 1] << (64 - shift) : mask[i];
}

void mask_rows(const uint64_t* mask, size_t n, int64_t* rows) {
    constexpr uint64_t kTop = uint64_t{1} << 63;
    for (size_t word = 0; word < n; ++word) {
        const int64_t first = static_cast<int64_t>(64 * word);
        uint64_t left = mask[word];
        for (int i = 0; i < 2; ++i, left &= left - 1) {  // without branches: most words have few
            *rows = first + static_cast<int64_t>(lowest_bit(left | kTop));
            rows += left != 0;
        }
        for (; left; left &= left - 1)
            *rows++ = first + static_cast<int64_t>(lowest_bit(left));
    }
}

}  // namespace embits
