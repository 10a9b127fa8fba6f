// A small net that decodes bits, in integers: codes that are searched under it are the same on every
// processor. coders/neural/net.py has the weights and their units.
#pragma once
#include <cstddef>
#include <cstdint>

namespace embits {

// Rows of int8 weights are padded with zeros to a multiple of this.
constexpr size_t kNetLane = 64;
constexpr size_t net_padded(size_t n) { return (n + kNetLane - 1) / kNetLane * kNetLane; }
constexpr int kNetTop = 63;  // activations are whole numbers from 0 to this

// With b in {0, 1}, s in {-1, 1}, H = net_padded(hidden):
//   p = q(alpha (A s) + a),  r = q(beta (G p) + g),  y = scale (63 Mb b + Mp p + Mr r) + o,
// where q rounds to whole numbers from 0 to 63.
struct NetWeights {
    size_t bits, dims, hidden;
    const int8_t* A;        // H rows of padded bits
    const int8_t* At;       // `bits` rows of H: its transpose
    const int8_t* G;        // H rows of H
    const int8_t* Gt;       // its transpose
    const int8_t* Mb;       // `dims` rows of padded bits
    const int8_t* M;        // `dims` rows of 2 H: Mp and Mr
    const int8_t* Mt;       // bits + 2 H rows of padded dims: the transpose of Mb, Mp and Mr
    const float *alpha, *a, *beta, *g;  // H each
    const float *scale, *o;             // `dims` each
    const float* squares;   // bits: |column of 63 Mb scale / 2|^2, what a flipped bit adds
};

// Rows of `dims` floats at norm 1, summed in one order; rows of zeros stay.
void unit_rows(const float* rows, size_t n, size_t dims, float* out);

// The vectors y of n packed codes, `dims` floats each.
void decode_net(const NetWeights& net, const uint8_t* codes, size_t n, unsigned threads,
                float* vectors);

// Flips bits of n packed codes while -2 cos(x, y) - pulls s falls, x being rows of norm 1: in each of
// `rounds`, the best of the `tries` bits whose slopes promise most.
void search_net(const NetWeights& net, const float* unit, const float* pulls, size_t n,
                unsigned rounds, unsigned tries, unsigned threads, uint8_t* codes);

}  // namespace embits
