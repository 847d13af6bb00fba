// What each instruction set provides: the work on one chunk of sequences, in two precisions.
#pragma once

#include <cstddef>
#include <cstdint>

// Sums over sequences are taken chunk by chunk in this order, whatever the number of threads is.
constexpr std::int64_t kChunk = 128;
// The same for sums over eigenvalues.
constexpr std::int64_t kEigenvalues = 2048;

template <class T>
struct Kernel {
  // numbers of type T that one call needs as scratch
  std::size_t (*full_scratch)(int layers, int heads, int size);
  std::size_t (*diagonal_scratch)(int layers, int size);
  // minus the first d entries of the last row of C: the implicit weights
  void (*full_forward)(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                       T* weights, void* scratch);
  // slopes in p and q, summed over the chunk
  void (*full_reverse)(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                       const T* weights_slope, T* p_slope, T* q_slope, void* scratch);
  // losses |w - target|^2 / 2 and the slopes of their sum, in one pass; where `clip` is positive, the slope of a
  // loss in w is shortened to at most that length
  void (*full_descent)(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                       const T* target, T clip, T* losses, T* p_slope, T* q_slope, void* scratch);
  // C after every layer
  void (*full_states)(int layers, int heads, int size, std::int64_t count, const T* p, const T* q, const T* gram,
                      T* states, void* scratch);
  void (*diagonal_forward)(int layers, int size, std::int64_t count, const T* omega, const T* gram, T* weights,
                           void* scratch);
  // slopes in the four numbers of every layer, for each sequence
  void (*diagonal_reverse)(int layers, int size, std::int64_t count, const T* omega, const T* gram,
                           const T* weights_slope, T* omega_slope, void* scratch);
  // losses and slopes in one pass, for each sequence
  void (*diagonal_descent)(int layers, int size, std::int64_t count, const T* omega, const T* gram, const T* target,
                           T clip, T* losses, T* omega_slope, void* scratch);
  // GD++ in the eigenbasis: the loss, and its slopes in the two rates of every layer, summed over eigenvalues
  std::size_t (*polynomial_scratch)(int layers);
  void (*polynomial_descent)(int layers, std::int64_t count, const T* rates, const T* eigenvalues, const T* masses,
                             T noise_var, T* loss, T* slope, void* scratch);
};
