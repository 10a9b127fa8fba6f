// The walk over cells: each query reads the cells that are nearest to it, and a cell is read once for
// all queries of a batch that want it at about the same time.
//
// After 4, 8, 16, ... cells a query looks at its k-th row and decides how many more it reads, so the
// answer does not depend on the queries beside it.
#pragma once
#include <algorithm>
#include <vector>

#include "search/blocked_scan.h"
#include "search/cells.h"

namespace embits {

// See blocked_scan.h for what a Search has; here also
//   kth_score(kept, n_bits)   the score of its k-th row, -infinity before there are k
template <class Search>
class CellScan {
   public:
    using Kept = typename Search::Kept;

    CellScan(const Search& search, const CellReading& reading, size_t first, size_t count)
        : search_(search), reading_(reading), first_(first),
          kept_(nothing_found(search, first, count)), hits_(new Hit[block_rows()]) {}

    void run() {
        const size_t count = kept_.size(), n_cells = reading_.centers.size();
        const CodeRows& codes = search_.codes;
        std::vector<size_t> all(count);
        for (size_t q = 0; q < count; ++q) all[q] = q;
        for (auto piece = codes.first_piece(); piece != codes.last_piece(); ++piece)
            if (!piece->cells) scan(*piece, 0, piece[1].start - piece->start, all);
        std::vector<CellVisits> visits = order();
        std::vector<size_t> read(count), rows(count);  // cells, and the rows in them
        std::vector<uint64_t> wanted;  // cell << 32 | query
        for (size_t end = kFirstCells; !all.empty(); end = std::min(2 * end, 2 * n_cells)) {
            wanted.clear();
            size_t left = 0;
            for (size_t q : all) {
                const double score = search_.kth_score(kept_[q], reading_.centers.n_bits());
                const size_t before = read[q], stop = visits[q].wanted(score, before, end);
                const size_t first = wanted.size();
                for (; read[q] < stop; ++read[q]) {
                    wanted.push_back(uint64_t{visits[q].cell(read[q])} << 32 | q);
                    rows[q] += rows_of(visits[q].cell(read[q]));
                }
                if (reading_.most_rows && rows[q] > reading_.most_rows[first_ + q]) {
                    reading_.gave_up[first_ + q] = 1;
                    wanted.resize(first);
                    continue;
                }
                const bool goes_on = reading_.probes ? stop > before : stop == end;
                if (goes_on && stop < n_cells) all[left++] = q;
            }
            all.resize(left);
            std::sort(wanted.begin(), wanted.end());
            read_cells(wanted);
            first_block_ = block_rows();  // queries have a limit now
        }
        reading_.rows_read += rows_read_;
        for (size_t q = 0; q < count; ++q) search_.write(first_ + q, kept_[q]);
    }

   private:
    size_t block_rows() const {
        return std::max<size_t>(64, kBlockBytes / std::max<size_t>(search_.width, 1));
    }

    std::vector<CellVisits> order() const {
        constexpr size_t kTogether = 4;
        const CellCenters& centers = reading_.centers;
        std::vector<CellVisits> visits;
        visits.reserve(kept_.size());
        std::vector<float> products(std::min(kTogether, kept_.size()) * centers.size());
        for (size_t q = 0; q < kept_.size(); q += kTogether) {
            const size_t some = std::min(kTogether, kept_.size() - q);
            centers.products(reading_.weights + (first_ + q) * centers.n_bits(), some,
                             products.data());
            for (size_t i = 0; i < some; ++i)
                visits.emplace_back(reading_, first_ + q + i, products.data() + i * centers.size());
        }
        return visits;
    }

    void read_cells(const std::vector<uint64_t>& wanted) {
        std::vector<size_t> queries;
        for (size_t at = 0; at < wanted.size();) {
            const uint64_t cell = wanted[at] >> 32;
            queries.clear();
            for (; at < wanted.size() && wanted[at] >> 32 == cell; ++at)
                queries.push_back(static_cast<uint32_t>(wanted[at]));
            const CodeRows& codes = search_.codes;
            for (auto piece = codes.first_piece(); piece != codes.last_piece(); ++piece)
                if (piece->cells) scan(*piece, piece->cells[cell], piece->cells[cell + 1], queries);
        }
    }

    size_t rows_of(size_t cell) const {
        size_t rows = 0;
        for (auto piece = search_.codes.first_piece(); piece != search_.codes.last_piece(); ++piece)
            if (piece->cells) rows += piece->cells[cell + 1] - piece->cells[cell];
        return rows;
    }

    // Offers the codes [begin, end) of a piece to some of the queries.
    void scan(const CodeRows::Piece& piece, size_t begin, size_t end,
              const std::vector<size_t>& queries) {
        rows_read_ += (end - begin) * queries.size();
        for (size_t row = begin, size = first_block_; row < end; row += size) {
            size = std::min({row > begin ? 2 * size : size, block_rows(), end - row});
            for (size_t q : queries)
                search_.offer_block(piece.codes + row * search_.width, piece.start + row, size,
                                    first_ + q, kept_[q], hits_.get());
        }
    }

    const Search& search_;
    const CellReading& reading_;
    size_t first_;
    std::vector<Kept> kept_;
    std::unique_ptr<Hit[]> hits_;
    size_t rows_read_ = 0, first_block_ = 64;
};

template <class Search>
void search_cells(const Search& search, const CellReading& reading, size_t n_queries,
                  unsigned threads) {
    constexpr size_t kQueriesAThread = 4;  // one takes about as long as a thread takes to start
    const unsigned workers = worthwhile_threads(threads, n_queries, kQueriesAThread);
    const size_t fair = (n_queries + workers - 1) / workers;
    const size_t pass = std::min(queries_per_pass(search.k), fair);
    run_parts(workers, static_cast<unsigned>((n_queries + pass - 1) / pass), [&](unsigned p) {
        const size_t first = p * pass;
        CellScan<Search>(search, reading, first, std::min(pass, n_queries - first)).run();
    });
}

}  // namespace embits
