// Cells: groups of codes that lie close together, each with a center. A search reads the cells whose
// centers are nearest to the query.
//
// A center is the mean of the codes of its cell as vectors of -1 and 1, times kCellUnit, rounded.
// Everything that assigns rows to cells is whole numbers: the cells are the same with every
// instruction set and any number of threads. Codes have at most kMaxCellBits bits.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace embits {

constexpr int kCellUnit = 7;
constexpr size_t kFirstCells = 4;  // that every query reads
constexpr size_t kMaxCellBits = 16384;  // above, a sum could exceed 32 bits

class CellCenters {
   public:
    // `centers` are n rows of n_bits numbers from -kCellUnit to kCellUnit, which are copied.
    CellCenters(const int8_t* centers, size_t n, size_t n_bits);
    ~CellCenters();

    size_t size() const { return n_; }
    size_t n_bits() const { return n_bits_; }

    // The cell of each packed code: of the nearest center among the groups of centers that are
    // nearest to the code; of equal ones the first.
    void assign(const uint8_t* codes, size_t n_rows, unsigned threads, uint32_t* cells) const;

    // For each of some queries of n_bits floats z, and for each cell, the mean of <z, s> over its
    // codes s of -1 and 1: size() numbers for each query.
    void products(const float* z, size_t n_queries, float* out) const;

    // |C|^2 of each cell, where C is the mean of its codes: n_bits if they are all the same.
    const std::vector<float>& squares() const { return squares_; }

    // What a cell loses by its place in the order in which a query visits cells. Without it, a query
    // far from all codes would read as many cells as do not matter; with it, the margin at which a
    // share of the neighbors is found is about the same for all queries (measured: a quarter fewer
    // rows than a fixed number of cells, at the same recall).
    const std::vector<float>& place_costs() const { return place_costs_; }

   private:
    struct Groups;
    const Groups& groups() const;

    size_t n_, n_bits_, length_;
    std::vector<int8_t> centers_;  // rows of length_
    std::vector<int32_t> sums_;    // of the numbers of each center
    std::vector<float> squares_, place_costs_;
    mutable std::shared_ptr<const Groups> groups_;
};

// Which cells a search reads.
struct CellReading {
    const CellCenters& centers;
    const float* weights;       // n_bits for each query: the score of a code s is <weights, s>
    const uint32_t* probes;     // how many cells each query reads at least; null: by the margin
    float margin;               // cells below it are not read
    float far_margin;           // nor by queries whose nearest cell is as close as `far`, or farther
    float near, far;            // closeness of the nearest cell, from which on to use each margin
    const uint64_t* most_rows;  // of cells, after which a query gives up; null: it never does
    uint8_t* gave_up;           // which queries have
    const float* longest;       // the greatest length of a row of each cell, if scores are
    const float* offsets;       // length * (<weights, s> + offset of the query); or null
    std::atomic<size_t>& rows_read;
};

// The cells in the order in which a query reads them.
class CellVisits {
   public:
    // `products` are those of the query with all cells.
    CellVisits(const CellReading& reading, size_t q, const float* products);

    size_t cell(size_t place) const { return known_[place].cell; }

    // How many cells to read once `read` are read and the k-th score is this, up to `most`; grows as
    // the score falls. With probes: as many, and then one by one until there are k rows.
    size_t wanted(double score, size_t read, size_t most);

   private:
    void set_margin(float closeness);

    struct Visit {
        float closeness;
        uint32_t cell;
    };
    void sort(const float* products, const float* lowest);
    float needed(double score, size_t cell) const;

    const CellReading* reading_;
    size_t q_;
    float margin_ = 0;          // of this query
    float scale_;               // of a query of -1 and 1 it is 1
    std::vector<Visit> known_;  // the first ones
    bool is_whole_ = false;     // whether no others can be read
};

// Centers of `n_cells` cells of packed codes by k-means, n_cells rows of n_bits numbers. Rows should
// be in random order.
// 1 <= n_cells <= n_rows.
void train_cells(const uint8_t* codes, size_t n_rows, size_t n_bits, size_t n_cells, uint64_t seed,
                 unsigned threads, int8_t* centers);

}  // namespace embits
