#include "search/code_rows.h"

#include <algorithm>
#include <cstring>

#include "search/filter.h"

namespace embits {

const CodeRows::Piece* CodeRows::piece_of(size_t row) const {
    return std::upper_bound(pieces_, end_, row,
                            [](size_t row, const Piece& piece) { return row < piece.start; }) -
           1;
}

const uint8_t* CodeRows::block(size_t row, size_t size, size_t width, uint8_t* to,
                               size_t& left) const {
    if (is_one_array()) return codes_ + row * width;
    const Piece* piece = piece_of(row);
    const size_t inside = piece[1].start - row;
    if (size <= inside) {
        left = std::min(left, inside);
        return piece->codes + (row - piece->start) * width;
    }
    left = size;
    for (size_t done = 0; done < size; ++piece) {
        const size_t first = row + done - piece->start;
        const size_t some = std::min(size - done, piece[1].start - row - done);
        std::memcpy(to + done * width, piece->codes + first * width, some * width);
        done += some;
    }
    return to;
}

void CodeRows::gather(size_t width, const int64_t* rows, size_t size, size_t left,
                      uint8_t* to) const {
    if (is_one_array()) return embits::gather(codes_, 0, width, rows, size, left, to);
    for (size_t done = 0; done < size;) {
        const Piece* piece = piece_of(static_cast<size_t>(rows[done]));
        const int64_t start = static_cast<int64_t>(piece->start);
        const int64_t* end = std::lower_bound(rows + done, rows + size,
                                              static_cast<int64_t>(piece[1].start));
        const size_t some = static_cast<size_t>(end - rows) - done;
        embits::gather(piece->codes, start, width, rows + done, some, some, to + done * width);
        done += some;
    }
}

}  // namespace embits
