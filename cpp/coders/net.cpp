#include "coders/net.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "coders/net_kernels.h"
#include "parallel.h"
#include "search/kernels.h"

namespace embits {
namespace {

constexpr size_t kRowsAPart = 16;  // rows that a thread takes at a time
constexpr size_t kTogether = 4;    // rows whose candidates are decoded together
constexpr size_t kSums = 8;        // parts of a sum, added in one order
constexpr double kLeastGain = 1e-6;
constexpr int kMiddle = 64;        // added to numbers from -63 to 63, so that rows are unsigned

uint8_t activation(float value) {
    const float low = value > 0 ? value : 0;  // 0 if it is no number
    const float inside = low < kNetTop ? low : float(kNetTop);
    return static_cast<uint8_t>(static_cast<int32_t>(inside + 0.5f));
}

void activations(const int32_t* sums, const float* scale, const float* bias, size_t n,
                 uint8_t* out) {
    for (size_t i = 0; i < n; ++i)
        out[i] = activation(static_cast<float>(sums[i]) * scale[i] + bias[i]);
}

double inner(const float* a, const float* b, size_t n) {
    double sums[kSums] = {};
    size_t i = 0;
    for (; i + kSums <= n; i += kSums)
        for (size_t lane = 0; lane < kSums; ++lane)
            sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
    for (size_t lane = 0; i + lane < n; ++lane)
        sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Sums of weights, which correct for numbers that are stored with an offset.
struct NetSums {
    explicit NetSums(const NetWeights& net) {
        const size_t hidden = net_padded(net.hidden);
        const auto of = [](const int8_t* weights, size_t n, size_t length, uint8_t times) {
            const std::vector<uint8_t> row(length, times);
            std::vector<int32_t> sums(n);
            net_kernel().large(row.data(), 1, weights, n, length, sums.data(), n);
            return sums;
        };
        A = of(net.A, hidden, net_padded(net.bits), 1);
        At = of(net.At, net.bits, hidden, kMiddle);
        Gt = of(net.Gt, hidden, hidden, kMiddle);
        Mt = of(net.Mt, net.bits + 2 * hidden, net_padded(net.dims), kMiddle);
    }

    std::vector<int32_t> A, At, Gt, Mt;
};

// What one thread computes with: the net, and room for the numbers of its rows.
class NetRun {
public:
    NetRun(const NetWeights& net, const NetSums& all)
        : net_(net),
          all_(all),
          bits_(net_padded(net.bits)),
          hidden_(net_padded(net.hidden)),
          dims_(net_padded(net.dims)) {}

    size_t hidden() const { return hidden_; }

    // For n packed codes: A s, 63 Mb b, the activations p and r, and the vectors y.
    void start(const uint8_t* codes, size_t n, int32_t* first, int32_t* base, uint8_t* states,
               float* vectors) {
        const size_t width = (net_.bits + 7) / 8;
        packed_.assign(n * bits_, 0);
        for (size_t row = 0; row < n; ++row)
            for (size_t bit = 0; bit < net_.bits; ++bit)
                packed_[row * bits_ + bit] = codes[row * width + bit / 8] >> (7 - bit % 8) & 1;
        kernel_.small(packed_.data(), n, net_.A, hidden_, bits_, first, hidden_);
        for (size_t row = 0; row < n; ++row)
            for (size_t j = 0; j < hidden_; ++j)
                first[row * hidden_ + j] = 2 * first[row * hidden_ + j] - all_.A[j];
        kernel_.small(packed_.data(), n, net_.Mb, net_.dims, bits_, base, net_.dims);
        for (size_t i = 0; i < n * net_.dims; ++i) base[i] *= kNetTop;
        for (size_t row = 0; row < n; ++row)
            activations(first + row * hidden_, net_.alpha, net_.a, hidden_,
                        states + row * 2 * hidden_);
        finish(states, n, [base, this](size_t row) { return base + row * net_.dims; }, vectors);
    }

    // The second activations and the vectors of n rows whose first activations are there.
    template <class Base>
    void finish(uint8_t* states, size_t n, Base base, float* vectors) {
        packed_.resize(n * hidden_);
        sums_.resize(n * std::max(hidden_, net_.dims));
        for (size_t row = 0; row < n; ++row)
            std::copy_n(states + row * 2 * hidden_, hidden_, packed_.data() + row * hidden_);
        kernel_.small(packed_.data(), n, net_.G, hidden_, hidden_, sums_.data(), hidden_);
        for (size_t row = 0; row < n; ++row)
            activations(sums_.data() + row * hidden_, net_.beta, net_.g, hidden_,
                        states + (2 * row + 1) * hidden_);
        kernel_.small(states, n, net_.M, net_.dims, 2 * hidden_, sums_.data(), net_.dims);
        for (size_t row = 0; row < n; ++row) {
            const int32_t* own = base(row);
            const int32_t* sums = sums_.data() + row * net_.dims;
            for (size_t i = 0; i < net_.dims; ++i)
                vectors[row * net_.dims + i] =
                    static_cast<float>(own[i] + sums[i]) * net_.scale[i] + net_.o[i];
        }
    }

    // The slopes of the energy by the signs of n rows; `by_vector` is -2 dcos/dy, which is changed.
    void slopes(float* by_vector, const uint8_t* states, size_t n, float* out) {
        const size_t inputs = net_.bits + 2 * hidden_;
        room_.resize(n * inputs);
        for (size_t row = 0; row < n; ++row)
            for (size_t i = 0; i < net_.dims; ++i) by_vector[row * net_.dims + i] *= net_.scale[i];
        product(by_vector, n, net_.dims, dims_, net_.Mt, all_.Mt, room_.data());
        by_state_.resize(n * hidden_);
        more_.resize(n * std::max(hidden_, net_.bits));
        for (size_t row = 0; row < n; ++row)
            for (size_t j = 0; j < hidden_; ++j) {
                const bool is_on = states[(2 * row + 1) * hidden_ + j] > 0;
                const float slope = room_[row * inputs + net_.bits + hidden_ + j];
                by_state_[row * hidden_ + j] = is_on ? slope * net_.beta[j] : 0;
            }
        product(by_state_.data(), n, hidden_, hidden_, net_.Gt, all_.Gt, more_.data());
        for (size_t row = 0; row < n; ++row)
            for (size_t j = 0; j < hidden_; ++j) {
                const bool is_on = states[2 * row * hidden_ + j] > 0;
                const float slope =
                    room_[row * inputs + net_.bits + j] + more_[row * hidden_ + j];
                by_state_[row * hidden_ + j] = is_on ? slope * net_.alpha[j] : 0;
            }
        product(by_state_.data(), n, hidden_, hidden_, net_.At, all_.At, more_.data());
        for (size_t row = 0; row < n; ++row)
            for (size_t bit = 0; bit < net_.bits; ++bit)
                out[row * net_.bits + bit] = room_[row * inputs + bit] * (kNetTop / 2.0f) +
                                             more_[row * net_.bits + bit];
    }

private:
    // Floats, rounded to -63 .. 63 of the largest, times rows of weights of `length` bytes.
    void product(const float* rows, size_t n, size_t size, size_t length, const int8_t* weights,
                 const std::vector<int32_t>& all, float* out) {
        packed_.assign(n * length, uint8_t{kMiddle});
        float units[kTogether];
        for (size_t row = 0; row < n; ++row) {
            const float* from = rows + row * size;
            float largest = 0;
            for (size_t i = 0; i < size; ++i) largest = std::max(largest, std::fabs(from[i]));
            const float scale = largest > 0 ? kNetTop / largest : 0;
            units[row] = largest / kNetTop;
            for (size_t i = 0; i < size; ++i) {
                const float value = from[i] * scale;
                const float inside = value > -64 && value < 64 ? value : 0;  // also if no number
                packed_[row * length + i] = static_cast<uint8_t>(
                    kMiddle + static_cast<int32_t>(inside + (inside >= 0 ? 0.5f : -0.5f)));
            }
        }
        const size_t n_weights = all.size();
        sums_.resize(n * n_weights);
        kernel_.large(packed_.data(), n, weights, n_weights, length, sums_.data(), n_weights);
        for (size_t row = 0; row < n; ++row)
            for (size_t w = 0; w < n_weights; ++w)
                out[row * n_weights + w] =
                    static_cast<float>(sums_[row * n_weights + w] - all[w]) * units[row];
    }

    const NetWeights& net_;
    const NetSums& all_;
    const NetKernel& kernel_ = net_kernel();
    size_t bits_, hidden_, dims_;
    std::vector<int32_t> sums_;
    std::vector<uint8_t> packed_;
    std::vector<float> room_, by_state_, more_;
};

template <class Work>
void in_parts(size_t n, unsigned threads, Work work) {
    const size_t parts = (n + kRowsAPart - 1) / kRowsAPart;
    run_parts(worthwhile_threads(threads, parts, 1), static_cast<unsigned>(parts),
              [&](unsigned part) {
                  const size_t first = part * kRowsAPart;
                  work(first, std::min(kRowsAPart, n - first));
              });
}

// Rows of one thread under search.
class NetSearch {
public:
    NetSearch(const NetWeights& net, const NetSums& all, const float* unit, const float* pulls,
              size_t n, unsigned tries, uint8_t* codes)
        : net_(net), run_(net, all), unit_(unit), pulls_(pulls), tries_(tries), codes_(codes),
          first_(n * run_.hidden()), base_(n * net.dims), states_(2 * n * run_.hidden()),
          vectors_(n * net.dims), squared_(n), along_(n) {
        run_.start(codes, n, first_.data(), base_.data(), states_.data(), vectors_.data());
        for (size_t row = 0; row < n; ++row) {
            measure(row, vectors_.data() + row * net.dims, squared_[row], along_[row]);
            live_.push_back(row);
        }
    }

    // One flip of each row that gains by one; false if none does.
    bool round() {
        std::vector<size_t> next;
        for (size_t at = 0; at < live_.size(); at += kTogether) {
            const size_t n = std::min(kTogether, live_.size() - at);
            choose(live_.data() + at, n);
            decode_candidates(live_.data() + at, n);
            for (size_t i = 0; i < n; ++i)
                if (flip_best(live_[at + i], i)) next.push_back(live_[at + i]);
        }
        live_.swap(next);
        return !live_.empty();
    }

private:
    bool is_one(size_t row, size_t bit) const {
        return codes_[row * ((net_.bits + 7) / 8) + bit / 8] >> (7 - bit % 8) & 1;
    }

    void measure(size_t row, const float* vector, double& squared, double& along) const {
        squared = std::max(inner(vector, vector, net_.dims), 1e-18);
        along = inner(vector, unit_ + row * net_.dims, net_.dims);
    }

    // The bits of each row whose flips promise most.
    void choose(const size_t* rows, size_t n) {
        slope_.resize(n * net_.dims);
        std::vector<uint8_t> states(2 * n * run_.hidden());
        for (size_t i = 0; i < n; ++i) {
            const size_t row = rows[i];
            const float norm = static_cast<float>(std::sqrt(squared_[row]));
            const float share = static_cast<float>(along_[row] / squared_[row]);
            for (size_t d = 0; d < net_.dims; ++d) {
                const float off = unit_[row * net_.dims + d] - share * vectors_[row * net_.dims + d];
                slope_[i * net_.dims + d] = -2 * off / norm;
            }
            std::copy_n(states_.data() + 2 * row * run_.hidden(), 2 * run_.hidden(),
                        states.data() + 2 * i * run_.hidden());
        }
        by_bit_.resize(n * net_.bits);
        run_.slopes(slope_.data(), states.data(), n, by_bit_.data());
        chosen_.assign(n * tries_, 0);
        for (size_t i = 0; i < n; ++i) best_bits(rows[i], by_bit_.data() + i * net_.bits, i);
    }

    void best_bits(size_t row, const float* slopes, size_t place) {
        size_t* chosen = chosen_.data() + place * tries_;
        std::vector<float> changes(tries_);
        size_t found = 0;
        const float squared = static_cast<float>(squared_[row]);
        for (size_t bit = 0; bit < net_.bits; ++bit) {
            const float slope = slopes[bit] - pulls_[row * net_.bits + bit];
            const float change = (is_one(row, bit) ? -2 * slope : 2 * slope) +
                                 2 * net_.squares[bit] / squared;
            size_t at = found;
            while (at > 0 && change < changes[at - 1]) --at;
            if (at == tries_) continue;
            found = std::min<size_t>(found + 1, tries_);
            for (size_t move = found - 1; move > at; --move) {
                changes[move] = changes[move - 1];
                chosen[move] = chosen[move - 1];
            }
            changes[at] = change;
            chosen[at] = bit;
        }
    }

    void decode_candidates(const size_t* rows, size_t n) {
        const size_t hidden = run_.hidden(), count = n * tries_;
        candidate_states_.assign(2 * count * hidden, 0);
        candidate_base_.resize(count * net_.dims);
        candidate_vectors_.resize(count * net_.dims);
        std::vector<int32_t> sums(hidden);
        for (size_t i = 0; i < count; ++i) {
            const size_t row = rows[i / tries_], bit = chosen_[i];
            const int32_t step = is_one(row, bit) ? -1 : 1;
            moved(row, bit, step, sums.data(), candidate_base_.data() + i * net_.dims);
            activations(sums.data(), net_.alpha, net_.a, hidden,
                        candidate_states_.data() + 2 * i * hidden);
        }
        run_.finish(candidate_states_.data(), count,
                    [this](size_t i) { return candidate_base_.data() + i * net_.dims; },
                    candidate_vectors_.data());
    }

    // A s and 63 Mb b after a bit has changed by `step`.
    void moved(size_t row, size_t bit, int32_t step, int32_t* first, int32_t* base) const {
        const size_t hidden = run_.hidden();
        const int8_t* of_A = net_.At + bit * hidden;
        const int8_t* of_M = net_.Mt + bit * net_padded(net_.dims);
        for (size_t j = 0; j < hidden; ++j)
            first[j] = first_[row * hidden + j] + 2 * step * of_A[j];
        for (size_t d = 0; d < net_.dims; ++d)
            base[d] = base_[row * net_.dims + d] + kNetTop * step * of_M[d];
    }

    bool flip_best(size_t row, size_t place) {
        const double cosine = along_[row] / std::sqrt(squared_[row]);
        double best = -kLeastGain, best_squared = 0, best_along = 0;
        size_t winner = tries_;
        for (size_t t = 0; t < tries_; ++t) {
            const size_t at = place * tries_ + t, bit = chosen_[at];
            double squared, along;
            measure(row, candidate_vectors_.data() + at * net_.dims, squared, along);
            const double pull = pulls_[row * net_.bits + bit];
            const double change = 2 * (cosine - along / std::sqrt(squared)) +
                                  (is_one(row, bit) ? 2 * pull : -2 * pull);
            if (change < best) {
                best = change;
                best_squared = squared;
                best_along = along;
                winner = t;
            }
        }
        if (winner == tries_) return false;
        const size_t at = place * tries_ + winner, bit = chosen_[at], hidden = run_.hidden();
        std::vector<int32_t> base(net_.dims), first(hidden);
        moved(row, bit, is_one(row, bit) ? -1 : 1, first.data(), base.data());
        std::copy(first.begin(), first.end(), first_.begin() + row * hidden);
        std::copy(base.begin(), base.end(), base_.begin() + row * net_.dims);
        std::copy_n(candidate_states_.data() + 2 * at * hidden, 2 * hidden,
                    states_.data() + 2 * row * hidden);
        std::copy_n(candidate_vectors_.data() + at * net_.dims, net_.dims,
                    vectors_.data() + row * net_.dims);
        squared_[row] = best_squared;
        along_[row] = best_along;
        codes_[row * ((net_.bits + 7) / 8) + bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
        return true;
    }

    const NetWeights& net_;
    NetRun run_;
    const float* unit_;
    const float* pulls_;
    size_t tries_;
    uint8_t* codes_;
    std::vector<int32_t> first_, base_, candidate_base_;
    std::vector<uint8_t> states_, candidate_states_;
    std::vector<float> vectors_, slope_, by_bit_, candidate_vectors_;
    std::vector<double> squared_, along_;
    std::vector<size_t> live_, chosen_;
};

}  // namespace

const NetKernel& net_kernel() {
#ifdef EMBITS_X86
    const char* name = kernels().name;
    if (!std::strcmp(name, kNetAvx512.name)) return kNetAvx512;
    if (!std::strcmp(name, kNetAvx2.name)) return kNetAvx2;
#endif
    return kNetPortable;
}

void unit_rows(const float* rows, size_t n, size_t dims, float* out) {
    for (size_t row = 0; row < n; ++row) {
        const double norm = std::sqrt(inner(rows + row * dims, rows + row * dims, dims));
        for (size_t i = row * dims; i < (row + 1) * dims; ++i)
            out[i] = norm > 0 ? static_cast<float>(rows[i] / norm) : 0;
    }
}

void decode_net(const NetWeights& net, const uint8_t* codes, size_t n, unsigned threads,
                float* vectors) {
    const size_t width = (net.bits + 7) / 8;
    const NetSums all(net);
    in_parts(n, threads, [&](size_t first, size_t count) {
        NetRun run(net, all);
        std::vector<int32_t> sums(count * run.hidden()), base(count * net.dims);
        std::vector<uint8_t> states(2 * count * run.hidden());
        run.start(codes + first * width, count, sums.data(), base.data(), states.data(),
                  vectors + first * net.dims);
    });
}

void search_net(const NetWeights& net, const float* unit, const float* pulls, size_t n,
                unsigned rounds, unsigned tries, unsigned threads, uint8_t* codes) {
    const size_t width = (net.bits + 7) / 8;
    const NetSums all(net);
    tries = static_cast<unsigned>(std::min<size_t>(tries, net.bits));
    in_parts(n, threads, [&](size_t first, size_t count) {
        NetSearch search(net, all, unit + first * net.dims, pulls + first * net.bits, count, tries,
                         codes + first * width);
        for (unsigned round = 0; round < rounds && search.round(); ++round) {
        }
    });
}

}  // namespace embits
