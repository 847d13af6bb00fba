// What each instruction set provides: the work on one chunk of sequences, in two precisions.
#pragma once

#include <cstddef>
#include <cstdint>

// Sums over sequences are taken chunk by chunk in this order, whatever the number of threads is.
constexpr std::int64_t kChunk = 128;
// The same for sums over eigenvalues.
constexpr std::int64_t kEigenvalues = 2048;

struct Shape {
  int layers, heads, size;  // size is d + 1
};

// What FULL and DIAG have in common. Parameters are for FULL P and then Q, each layers x heads x size x size, and
// for DIAG four numbers a layer. Gradients in them are for FULL summed over the chunk, for DIAG one set a sequence.
// Ranges are three numbers a layer: the largest |S| and the largest sum of squared labels that are not damped, and the
// largest tr S of a context that is not scaled, of which the first layer's is used (damping.hpp).
template <class T>
struct Family {
  // numbers of type T that one call needs as scratch
  std::size_t (*scratch)(Shape shape);
  // minus the first d entries of the last row of C: the implicit weights
  void (*forward)(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram, T* weights,
                  void* scratch);
  // gradients in the parameters
  void (*vjp)(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram,
              const T* weights_cotangent, T* parameters_gradient, void* scratch);
  // losses |w - target|^2 / 2 and their gradients in one pass; where `clip` is positive, the gradient of a loss in w is
  // shortened to at most that length
  void (*value_and_grad)(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram,
                         const T* target, T clip, T* losses, T* parameters_gradient, void* scratch);
};

template <class T>
struct Kernel {
  Family<T> full, diagonal;
  // C after every layer
  void (*full_states)(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram,
                      T* states, void* scratch);
  // GD++ in the eigenbasis: the loss, and its gradients in the two rates of every layer, summed over eigenvalues
  std::size_t (*polynomial_scratch)(int layers);
  void (*polynomial_value_and_grad)(int layers, std::int64_t count, const T* rates, const T* eigenvalues,
                                    const T* node_weights, T noise_var, T* loss, T* gradient, void* scratch);
  // Gram matrices of contexts: x is count x examples x (size - 1), y is count x examples
  std::size_t (*gram_scratch)(int size);
  void (*gram)(int size, std::int64_t examples, std::int64_t count, const T* x, const T* y, T* gram, void* scratch);
};
