// K-means of packed codes in whole numbers.
//
// The distance of a code s, of -1 and 1, to a center C of unit u is |u s - C|^2, which is least where
// 2 u <s, C> - |C|^2 is greatest. With b = (s + 1) / 2 that is a product of bits and int8. Centers are
// trained with the unit 127, and rounded to kCellUnit at the end, which is as good (measured) and
// takes half a byte.
//
// Many cells are trained in two levels: groups first, then the cells of each group from its rows
// alone, then a few rounds of all cells, in which a row looks at the groups nearest to it. So n rows
// cost about n * sqrt(cells) products instead of n * cells.
#include "search/cells.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>

#include "coders/net.h"
#include "coders/net_kernels.h"
#include "parallel.h"

namespace embits {
namespace {

constexpr size_t kFlat = 512;          // from more cells on, they are grouped
constexpr size_t kGroupsTried = 8;     // by a row
constexpr size_t kRowsAPart = 2048;    // of an assignment
constexpr size_t kTileRows = 64, kTileCells = 256;
constexpr size_t kRounds = 8, kLastRounds = 3;
constexpr size_t kRowsPerGroup = 256;  // that groups are trained on
constexpr int kFineUnit = 127;         // of centers under training
constexpr double kPlaceWeight = 0.7;
constexpr size_t kVisits = 128;
constexpr int kMiddle = 64, kTop = 63;  // queries are rounded to 64 - 63 .. 64 + 63

// Random numbers of a seed (splitmix64), the same everywhere.
class Random {
   public:
    explicit Random(uint64_t seed) : state_(seed) {}
    size_t below(size_t n) { return static_cast<size_t>(next() % n); }

   private:
    uint64_t next() {
        uint64_t x = state_ += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }
    uint64_t state_;
};

void unpack(const uint8_t* code, size_t n_bits, uint8_t* bits) {
    for (size_t i = 0; i < n_bits; ++i) bits[i] = code[i / 8] >> (7 - i % 8) & 1;
}

// Centers whose rows are padded for the kernels.
struct Padded {
    size_t n = 0, length = 0;
    std::vector<int8_t> rows;
    std::vector<int32_t> offsets;  // 2 u sum C + |C|^2, which a row's product is lowered by
    int unit = kFineUnit;

    Padded() = default;
    Padded(const int8_t* centers, size_t count, size_t n_bits, size_t stride, int unit = kFineUnit)
        : n(count), length(net_padded(n_bits)), rows(count * length), offsets(count), unit(unit) {
        for (size_t c = 0; c < n; ++c) set(c, centers + c * stride, n_bits);
    }

    void set(size_t c, const int8_t* center, size_t n_bits) {
        std::copy_n(center, n_bits, rows.data() + c * length);
        int32_t sum = 0, squares = 0;
        for (size_t i = 0; i < n_bits; ++i) {
            sum += center[i];
            squares += int32_t{center[i]} * center[i];
        }
        offsets[c] = 2 * unit * sum + squares;
    }

    int32_t closeness(int32_t product, size_t c) const {
        return 4 * unit * product - offsets[c];
    }
};

struct Nearest {
    int32_t closeness;
    uint32_t center;

    bool operator<(const Nearest& other) const {  // a better one first
        return closeness > other.closeness ||
               (closeness == other.closeness && center < other.center);
    }
};
constexpr Nearest kNothing{INT32_MIN, UINT32_MAX};

// Calls see(row, nearest) with every center, for rows of unpacked bits.
template <class See>
void compare(const Padded& centers, size_t first, size_t count, const uint8_t* bits, size_t n,
             std::vector<int32_t>& products, const See& see) {
    products.resize(n * kTileCells);
    for (size_t at = first; at < first + count; at += kTileCells) {
        const size_t some = std::min(kTileCells, first + count - at);
        net_kernel().small(bits, n, centers.rows.data() + at * centers.length, some,
                           centers.length, products.data(), kTileCells);
        for (size_t r = 0; r < n; ++r)
            for (size_t c = 0; c < some; ++c)
                see(r, at + c, centers.closeness(products[r * kTileCells + c], at + c));
    }
}

template <class Work>
void in_parts(size_t n, unsigned threads, const Work& work) {
    const size_t parts = (n + kRowsAPart - 1) / kRowsAPart;
    run_parts(worthwhile_threads(threads, parts, 1), static_cast<unsigned>(parts),
              [&](unsigned part) {
                  const size_t first = part * kRowsAPart;
                  work(first, std::min(kRowsAPart, n - first));
              });
}

void assign_flat(const Padded& centers, const uint8_t* codes, size_t n, size_t n_bits,
                 unsigned threads, uint32_t* cells) {
    const size_t width = (n_bits + 7) / 8;
    in_parts(n, threads, [&](size_t first, size_t count) {
        std::vector<uint8_t> bits(kTileRows * centers.length);
        std::vector<int32_t> products;
        for (size_t row = first; row < first + count; row += kTileRows) {
            const size_t some = std::min(kTileRows, first + count - row);
            for (size_t r = 0; r < some; ++r)
                unpack(codes + (row + r) * width, n_bits, bits.data() + r * centers.length);
            Nearest best[kTileRows];
            std::fill_n(best, some, kNothing);
            compare(centers, 0, centers.n, bits.data(), some, products,
                    [&](size_t r, size_t c, int32_t closeness) {
                        if (closeness > best[r].closeness)
                            best[r] = {closeness, static_cast<uint32_t>(c)};
                    });
            for (size_t r = 0; r < some; ++r) cells[row + r] = best[r].center;
        }
    });
}

// The means of the cells; cells without rows become rows of the largest ones.
void set_means(const uint8_t* codes, size_t n, size_t n_bits, const uint32_t* cells, size_t n_cells,
               Random& random, unsigned threads, int8_t* centers) {
    const size_t width = (n_bits + 7) / 8;
    const unsigned parts = worthwhile_threads(threads, n, kRowsAPart);
    std::vector<std::vector<uint32_t>> sums(parts), counts(parts);
    run_parts(parts, parts, [&](unsigned part) {
        std::vector<uint32_t>&ones = sums[part], &rows = counts[part];
        ones.resize(n_cells * n_bits);
        rows.resize(n_cells);
        std::vector<uint8_t> bits(n_bits);
        for (size_t row = n * part / parts; row < n * (part + 1) / parts; ++row) {
            unpack(codes + row * width, n_bits, bits.data());
            uint32_t* to = ones.data() + cells[row] * n_bits;
            for (size_t i = 0; i < n_bits; ++i) to[i] += bits[i];
            ++rows[cells[row]];
        }
    });
    for (unsigned part = 1; part < parts; ++part) {
        for (size_t i = 0; i < sums[0].size(); ++i) sums[0][i] += sums[part][i];
        for (size_t c = 0; c < n_cells; ++c) counts[0][c] += counts[part][c];
    }
    std::vector<size_t> empty;
    for (size_t c = 0; c < n_cells; ++c) {
        const int64_t count = counts[0][c];
        if (count == 0) empty.push_back(c);
        for (size_t i = 0; count && i < n_bits; ++i) {
            const int64_t sum = kFineUnit * (2 * int64_t{sums[0][c * n_bits + i]} - count);
            const int64_t rounded = (2 * std::abs(sum) + count) / (2 * count);
            centers[c * n_bits + i] = static_cast<int8_t>(sum < 0 ? -rounded : rounded);
        }
    }
    std::vector<uint8_t> bits(n_bits);
    for (size_t c : empty) {
        const auto largest = std::max_element(counts[0].begin(), counts[0].end());
        *largest /= 2;
        const uint32_t from = static_cast<uint32_t>(largest - counts[0].begin());
        size_t row = random.below(n);
        for (size_t tried = 0; tried < n && cells[row] != from; ++tried) row = (row + 1) % n;
        unpack(codes + row * width, n_bits, bits.data());
        for (size_t i = 0; i < n_bits; ++i)
            centers[c * n_bits + i] = static_cast<int8_t>(bits[i] ? kFineUnit : -kFineUnit);
    }
}

// K-means in one level.
void train_flat(const uint8_t* codes, size_t n, size_t n_bits, size_t n_cells, Random& random,
                unsigned threads, int8_t* centers) {
    const size_t width = (n_bits + 7) / 8;
    std::vector<size_t> rows(n);
    std::iota(rows.begin(), rows.end(), size_t{0});
    std::vector<uint8_t> bits(n_bits);
    for (size_t c = 0; c < n_cells; ++c) {
        if (c < n) std::swap(rows[c], rows[c + random.below(n - c)]);
        unpack(codes + rows[std::min(c, n - 1)] * width, n_bits, bits.data());
        for (size_t i = 0; i < n_bits; ++i)
            centers[c * n_bits + i] = static_cast<int8_t>(bits[i] ? kFineUnit : -kFineUnit);
    }
    std::vector<uint32_t> cells(n);
    for (size_t round = 0; round < kRounds; ++round) {
        assign_flat(Padded(centers, n_cells, n_bits, n_bits), codes, n, n_bits, threads,
                    cells.data());
        set_means(codes, n, n_bits, cells.data(), n_cells, random, threads, centers);
    }
}

size_t group_count(size_t n_cells) {
    return n_cells <= kFlat ? 1 : static_cast<size_t>(std::lround(std::sqrt(double(n_cells))));
}

}  // namespace

struct CellCenters::Groups {
    Padded leads;                // the center of each group
    Padded members;              // the centers of the cells, group by group
    std::vector<size_t> starts;  // of each group among them
    std::vector<uint32_t> cells; // whose centers they are
};

CellCenters::CellCenters(const int8_t* centers, size_t n, size_t n_bits)
    : n_(n), n_bits_(n_bits), length_(net_padded(n_bits)), centers_(n * length_), sums_(n),
      squares_(n) {
    for (size_t c = 0; c < n; ++c) {
        const int8_t* from = centers + c * n_bits;
        int32_t squares = 0;
        for (size_t i = 0; i < n_bits; ++i) {
            centers_[c * length_ + i] = from[i];
            sums_[c] += from[i];
            squares += int32_t{from[i]} * from[i];
        }
        squares_[c] = static_cast<float>(squares) / (kCellUnit * kCellUnit);
    }
    const double mean = std::accumulate(squares_.begin(), squares_.end(), 0.0) / double(n);
    const double spread = kPlaceWeight * std::sqrt(std::max(double(n_bits) - mean, 1.0));
    for (size_t place = 0; place < n; ++place)
        place_costs_.push_back(static_cast<float>(spread * std::log1p(double(place))));
}

CellCenters::~CellCenters() = default;

const CellCenters::Groups& CellCenters::groups() const {
    static std::mutex making;
    const std::lock_guard<std::mutex> lock(making);
    if (groups_) return *groups_;
    const size_t width = (n_bits_ + 7) / 8, n_groups = group_count(n_);
    std::vector<uint8_t> signs(n_ * width);
    for (size_t c = 0; c < n_; ++c)
        for (size_t i = 0; i < n_bits_; ++i)
            if (centers_[c * length_ + i] >= 0)
                signs[c * width + i / 8] |= static_cast<uint8_t>(0x80 >> i % 8);
    std::vector<int8_t> leads(n_groups * n_bits_);
    Random random(n_);
    train_flat(signs.data(), n_, n_bits_, n_groups, random, 1, leads.data());
    auto made = std::make_shared<Groups>();
    made->leads = Padded(leads.data(), n_groups, n_bits_, n_bits_);
    std::vector<uint32_t> group_of(n_);
    assign_flat(made->leads, signs.data(), n_, n_bits_, 1, group_of.data());
    made->starts.resize(n_groups + 1);
    for (uint32_t group : group_of) ++made->starts[group + 1];
    for (size_t g = 0; g < n_groups; ++g) made->starts[g + 1] += made->starts[g];
    made->cells.resize(n_);
    std::vector<size_t> next(made->starts.begin(), made->starts.end() - 1);
    for (size_t c = 0; c < n_; ++c) made->cells[next[group_of[c]]++] = static_cast<uint32_t>(c);
    std::vector<int8_t> ordered(n_ * length_);
    for (size_t at = 0; at < n_; ++at)
        std::copy_n(centers_.data() + made->cells[at] * length_, length_,
                    ordered.data() + at * length_);
    made->members = Padded(ordered.data(), n_, n_bits_, length_, kCellUnit);
    groups_ = made;
    return *groups_;
}

void CellCenters::assign(const uint8_t* codes, size_t n_rows, unsigned threads,
                         uint32_t* cells) const {
    if (group_count(n_) == 1)
        return assign_flat(Padded(centers_.data(), n_, n_bits_, length_, kCellUnit), codes, n_rows, n_bits_,
                           threads, cells);
    const Groups& groups = this->groups();
    const size_t width = (n_bits_ + 7) / 8, n_groups = groups.leads.n;
    const size_t tried = std::min(kGroupsTried, n_groups);
    in_parts(n_rows, threads, [&](size_t first, size_t count) {
        std::vector<uint8_t> bits(count * length_), gathered(kTileRows * length_);
        for (size_t r = 0; r < count; ++r)
            unpack(codes + (first + r) * width, n_bits_, bits.data() + r * length_);
        std::vector<int32_t> products;
        std::vector<Nearest> leads(n_groups);
        std::vector<std::vector<uint32_t>> rows(n_groups);  // those that try each group
        for (size_t r = 0; r < count; ++r) {
            compare(groups.leads, 0, n_groups, bits.data() + r * length_, 1, products,
                    [&](size_t, size_t g, int32_t closeness) {
                        leads[g] = {closeness, static_cast<uint32_t>(g)};
                    });
            std::nth_element(leads.begin(), leads.begin() + (tried - 1), leads.end());
            for (size_t i = 0; i < tried; ++i)
                rows[leads[i].center].push_back(static_cast<uint32_t>(r));
        }
        std::vector<Nearest> best(count, kNothing);
        for (size_t g = 0; g < n_groups; ++g)
            for (size_t at = 0; at < rows[g].size(); at += kTileRows) {
                const size_t some = std::min(kTileRows, rows[g].size() - at);
                for (size_t r = 0; r < some; ++r)
                    std::copy_n(bits.data() + rows[g][at + r] * length_, length_,
                                gathered.data() + r * length_);
                compare(groups.members, groups.starts[g], groups.starts[g + 1] - groups.starts[g],
                        gathered.data(), some, products,
                        [&](size_t r, size_t c, int32_t closeness) {
                            const Nearest found{closeness, groups.cells[c]};
                            if (found < best[rows[g][at + r]]) best[rows[g][at + r]] = found;
                        });
            }
        for (size_t r = 0; r < count; ++r) cells[first + r] = best[r].center;
    });
}

void CellCenters::products(const float* z, size_t n_queries, float* out) const {
    constexpr size_t kTogether = 4;
    std::vector<uint8_t> rows(kTogether * length_);
    std::vector<int32_t> sums(kTogether * n_);
    float units[kTogether];
    for (size_t first = 0; first < n_queries; first += kTogether) {
        const size_t some = std::min(kTogether, n_queries - first);
        std::fill(rows.begin(), rows.end(), uint8_t{kMiddle});
        for (size_t r = 0; r < some; ++r) {
            const float* query = z + (first + r) * n_bits_;
            float largest = 0;
            for (size_t i = 0; i < n_bits_; ++i) largest = std::max(largest, std::fabs(query[i]));
            const float scale = largest > 0 ? kTop / largest : 0;
            units[r] = largest / (kTop * kCellUnit);
            for (size_t i = 0; i < n_bits_; ++i)
                rows[r * length_ + i] =
                    static_cast<uint8_t>(int(kMiddle + 0.5f + query[i] * scale));
        }
        const size_t padded = some == 1 ? 1 : kTogether;
        net_kernel().large(rows.data(), padded, centers_.data(), n_, length_, sums.data(), n_);
        for (size_t r = 0; r < some; ++r)
            for (size_t c = 0; c < n_; ++c)
                out[(first + r) * n_ + c] =
                    static_cast<float>(sums[r * n_ + c] - kMiddle * sums_[c]) * units[r];
    }
}

CellVisits::CellVisits(const CellReading& reading, size_t q, const float* products)
    : reading_(&reading), q_(q) {
    const size_t n_bits = reading.centers.n_bits();
    const float* z = reading.weights + q * n_bits;
    double squares = 0;
    for (size_t i = 0; i < n_bits; ++i) squares += double{z[i]} * z[i];
    scale_ = squares > 0 ? static_cast<float>(std::sqrt(squares / double(n_bits))) : 1;
    sort(products, nullptr);
}

// The score that a cell's codes need for a row of this score, as closeness is measured.
float CellVisits::needed(double score, size_t cell) const {
    if (reading_->longest)
        score = score > 0 ? score / reading_->longest[cell] - reading_->offsets[q_] : -INFINITY;
    return static_cast<float>(score / scale_);
}

// Of a query unlike those that the margin was measured with, by its nearest cell.
void CellVisits::set_margin(float closeness) {
    const CellReading& r = *reading_;
    const float share = closeness >= r.near ? 1 : (closeness - r.far) / (r.near - r.far);
    margin_ = r.far_margin + std::max(share, 0.0f) * (r.margin - r.far_margin);
}

// Finds the order of the cells whose key is at least `lowest`; if that is not given, of the first
// kVisits cells or of a few more.
void CellVisits::sort(const float* products, const float* lowest) {
    const size_t n = reading_->centers.size();
    const float* squares = reading_->centers.squares().data();
    std::vector<float> closeness(n), keys;
    const float unit = 1 / scale_;
    for (size_t c = 0; c < n; ++c) closeness[c] = products[c] * unit - squares[c] * 0.25f;
    if (!lowest) set_margin(*std::max_element(closeness.begin(), closeness.end()));
    if (reading_->longest) {
        double expected = 0;  // the score of the best row, about
        for (size_t c = 0; c < n; ++c)
            expected = std::max(expected, double{reading_->longest[c]} *
                                              (double{products[c]} + reading_->offsets[q_]));
        keys = closeness;
        for (size_t c = 0; expected > 0 && c < n; ++c) keys[c] -= needed(expected, c);
    }
    const float* key = keys.empty() ? closeness.data() : keys.data();
    float least = lowest ? *lowest : -INFINITY;
    is_whole_ = lowest || 4 * kVisits >= n;
    if (!is_whole_) {  // the key that about so many cells reach, from every 9th cell or so
        const size_t step = std::max<size_t>(1, n / 256);
        const size_t wanted = kVisits / step + kVisits / step / 4 + 4;
        std::vector<float> some;
        for (size_t c = 0; c < n; c += step) some.push_back(key[c]);
        std::nth_element(some.begin(), some.begin() + ptrdiff_t(wanted), some.end(),
                         std::greater<float>());
        least = some[wanted];
    }
    // Whole numbers that rise as keys fall, above the cells: they sort faster than pairs.
    std::vector<uint64_t> order(n + 1);
    size_t count = 0;
    for (size_t c = 0; c < n; ++c) {
        uint32_t rank;
        std::memcpy(&rank, &key[c], sizeof rank);
        rank ^= rank >> 31 ? 0 : 0x7fffffffu;
        order[count] = uint64_t{rank} << 32 | c;
        count += key[c] >= least;
    }
    std::sort(order.begin(), order.begin() + ptrdiff_t(count));
    known_.resize(count);
    for (size_t place = 0; place < count; ++place) {
        const uint32_t cell = static_cast<uint32_t>(order[place]);
        known_[place] = {closeness[cell], cell};
    }
}

size_t CellVisits::wanted(double score, size_t read, size_t most) {
    const size_t n = reading_->centers.size();
    const std::vector<float>& costs = reading_->centers.place_costs();
    most = std::min(most, n);
    if (reading_->probes)
        most = std::min(most, std::max<size_t>(reading_->probes[q_], read + (score == -INFINITY)));
    if (most > known_.size() && !is_whole_) {
        float lowest = -INFINITY;
        if (!reading_->probes && !reading_->longest) {
            // Later cells need more, and scores only rise. The slack is above rounding.
            lowest = margin_ + needed(score, 0) + costs[known_.size()];
            lowest -= 1e-3f * (1 + std::fabs(lowest));
        }
        if (lowest > known_.back().closeness) {
            is_whole_ = true;
        } else {
            std::vector<float> products(n);
            reading_->centers.products(reading_->weights + q_ * reading_->centers.n_bits(), 1,
                                       products.data());
            sort(products.data(), &lowest);
        }
    }
    most = std::min(most, known_.size());
    if (reading_->probes) return most;
    while (most > kFirstCells) {
        const Visit& last = known_[most - 1];
        if (last.closeness - needed(score, last.cell) - costs[most - 1] >= margin_) break;
        --most;
    }
    return most;
}

namespace {

int8_t coarse(int8_t number) {
    const int size = (2 * kCellUnit * std::abs(int{number}) + kFineUnit) / (2 * kFineUnit);
    return static_cast<int8_t>(number < 0 ? -size : size);
}

void train_fine(const uint8_t* codes, size_t n, size_t n_bits, size_t n_cells, uint64_t seed,
                unsigned threads, int8_t* centers) {
    Random random(seed);
    const size_t width = (n_bits + 7) / 8, n_groups = group_count(n_cells);
    if (n_groups == 1) return train_flat(codes, n, n_bits, n_cells, random, threads, centers);
    std::vector<int8_t> leads(n_groups * n_bits);
    // Any rows will do: the caller's are in random order.
    train_flat(codes, std::min(n, kRowsPerGroup * n_groups), n_bits, n_groups, random, threads,
               leads.data());
    std::vector<uint32_t> cells(n);
    assign_flat(Padded(leads.data(), n_groups, n_bits, n_bits), codes, n, n_bits, threads,
                cells.data());
    std::vector<std::vector<uint8_t>> members(n_groups);
    for (size_t row = 0; row < n; ++row)
        members[cells[row]].insert(members[cells[row]].end(), codes + row * width,
                                   codes + (row + 1) * width);
    // Each group gets cells in proportion to its rows: the ends of its share of all rows, rounded.
    std::vector<size_t> ends(n_groups);
    size_t rows = 0;
    for (size_t g = 0; g < n_groups; ++g) {
        rows += members[g].size() / width;
        ends[g] = (rows * n_cells + n / 2) / n;
    }
    run_parts(worthwhile_threads(threads, n_groups, 1), static_cast<unsigned>(n_groups),
              [&](unsigned g) {
                  const size_t first = g ? ends[g - 1] : 0;
                  if (ends[g] == first) return;
                  Random own(seed + g + 1);
                  train_flat(members[g].data(), members[g].size() / width, n_bits, ends[g] - first,
                             own, 1, centers + first * n_bits);
              });
    for (size_t round = 0; round < kLastRounds; ++round) {
        std::vector<int8_t> rounded(n_cells * n_bits);
        std::transform(centers, centers + rounded.size(), rounded.begin(), coarse);
        CellCenters(rounded.data(), n_cells, n_bits).assign(codes, n, threads, cells.data());
        set_means(codes, n, n_bits, cells.data(), n_cells, random, threads, centers);
    }
}

}  // namespace

void train_cells(const uint8_t* codes, size_t n, size_t n_bits, size_t n_cells, uint64_t seed,
                 unsigned threads, int8_t* centers) {
    train_fine(codes, n, n_bits, n_cells, seed, threads, centers);
    for (size_t i = 0; i < n_cells * n_bits; ++i) centers[i] = coarse(centers[i]);
}

}  // namespace embits
