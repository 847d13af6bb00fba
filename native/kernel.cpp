// The kernels for one instruction set. Compiled once per set, with LINTRA_ISA naming it.
#include "kernel.hpp"

#include <cmath>
#include <utility>

#include "diagonal.hpp"
#include "full.hpp"
#include "gram.hpp"
#include "polynomial.hpp"

namespace LINTRA_ISA {

constexpr std::size_t kAlignment = 64;

template <class T>
Vec<T>* aligned(void* memory) {
  auto address = reinterpret_cast<std::uintptr_t>(memory);
  return reinterpret_cast<Vec<T>*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

template <class T>
std::size_t numbers(std::size_t vectors) {
  return vectors * Lanes<T>::width + kAlignment / sizeof(T);
}

// Calls work(first sequence, how many) for every group of sequences that fill one vector
template <class T, class Work>
void for_groups(std::int64_t count, Work work) {
  constexpr std::int64_t width = Lanes<T>::width;
  for (std::int64_t first = 0; first < count; first += width)
    work(first, (int)(count - first < width ? count - first : width));
}

// Calls work(size) with a size that the compiler knows for the paper's d = 10
template <int known, class Work>
void with_size(int size, Work work) {
  if (size == known)
    work(Static<known>{});
  else
    work(Dynamic{size});
}

// From the last row of C to the weights, which are minus its first d entries
template <class T>
void to_weights(Vec<T>* result, int dim) {
  for (int i = 0; i < dim; ++i) result[i] = -result[i];
}

// The gradient in the last row of C, from the gradient in the weights
template <class T>
void cotangent_given(Vec<T>* column, const T* weights_cotangent, int dim, int filled) {
  load_lanes<T>(column, weights_cotangent, dim, filled);
  to_weights<T>(column, dim);
  column[dim] = Vec<T>{};
}

// The same for the loss |w - target|^2 / 2, which is given back
template <class T>
void gradient_of_loss(Vec<T>* column, Vec<T>* weights, const T* target, T clip, T* losses, int dim, int filled) {
  using V = Vec<T>;
  load_lanes<T>(column, target, dim, filled);
  V square = {};
  for (int i = 0; i < dim; ++i) {
    column[i] = weights[i] - column[i];
    square += column[i] * column[i];
  }
  V factor = V{} - T(1);
  for (int lane = 0; lane < filled; ++lane) {
    losses[lane] = T(0.5) * square[lane];
    if (clip > 0 && square[lane] > clip * clip) factor[lane] = -clip / std::sqrt(square[lane]);
  }
  for (int i = 0; i < dim; ++i) column[i] *= factor;
  column[dim] = V{};
}

// FULL and DIAG are two models with the same steps
template <template <class, class> class Model, class T>
struct Steps {
  // Calls work(model, first sequence, how many) for every group, with its Gram matrices loaded, and returns the model's
  // gradients in the parameters where there is a place for them
  template <class Work>
  static void each_group(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram,
                         T* parameters_gradient, void* scratch, Work work) {
    constexpr int fewer = Model<T, Dynamic>::fewer;
    with_size<11 - fewer>(shape.size - fewer, [&](auto size) {
      Model<T, decltype(size)> model(shape, size, parameters, ranges, aligned<T>(scratch));
      for_groups<T>(count, [&](std::int64_t first, int filled) {
        model.load(gram + first * shape.size * shape.size, filled);
        work(model, first, filled);
        if (parameters_gradient) model.store_group(parameters_gradient, first, filled);
      });
      if (parameters_gradient) model.store_sums(parameters_gradient);
    });
  }

  static std::size_t scratch(Shape shape) { return numbers<T>(Model<T, Dynamic>::scratch(shape)); }

  static void forward(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram, T* weights,
                      void* scratch) {
    const int dim = shape.size - 1;
    each_group(shape, count, parameters, ranges, gram, nullptr, scratch,
               [&](auto& model, std::int64_t first, int filled) {
                 model.forward();
                 to_weights<T>(model.result, dim);
                 store_lanes<T>(weights + first * dim, model.result, dim, filled);
               });
  }

  static void vjp(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram,
                  const T* weights_cotangent, T* parameters_gradient, void* scratch) {
    const int dim = shape.size - 1;
    each_group(shape, count, parameters, ranges, gram, parameters_gradient, scratch,
               [&](auto& model, std::int64_t first, int filled) {
                 model.forward();
                 cotangent_given<T>(model.column, weights_cotangent + first * dim, dim, filled);
                 model.backward();
               });
  }

  static void value_and_grad(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram,
                             const T* target, T clip, T* losses, T* parameters_gradient, void* scratch) {
    const int dim = shape.size - 1;
    each_group(shape, count, parameters, ranges, gram, parameters_gradient, scratch,
               [&](auto& model, std::int64_t first, int filled) {
                 model.forward();
                 to_weights<T>(model.result, dim);
                 gradient_of_loss<T>(model.column, model.result, target + first * dim, clip, losses + first, dim,
                                      filled);
                 model.backward();
               });
  }

  static constexpr Family<T> family = {scratch, forward, vjp, value_and_grad};
};

template <class T>
void full_states(Shape shape, std::int64_t count, const T* parameters, const T* ranges, const T* gram, T* states,
                 void* scratch) {
  const int square = shape.size * shape.size;
  Steps<Full, T>::each_group(
      shape, count, parameters, ranges, gram, nullptr, scratch, [&](auto& full, std::int64_t first, int filled) {
        Vec<T>*now = full.result, *next = full.spare;
        for (int i = 0; i < square; ++i) now[i] = Vec<T>{} + T(i / shape.size == i % shape.size);
        for (int l = 0; l < shape.layers; ++l) {
          full.layer_map(l);
          if (l + 1 < shape.layers) full.layer_gram(l);
          product<T, Store::assign>(next, full.whole(full.move + l * square), full.whole(now), full.size);
          std::swap(now, next);
          for (int lane = 0; lane < filled; ++lane) {
            T* out = states + ((first + lane) * shape.layers + l) * square;
            for (int i = 0; i < square; ++i) out[i] = now[i][lane];
          }
        }
      });
}

template <class T>
std::size_t polynomial_scratch(int layers) {
  return numbers<T>(Polynomial<T>::scratch(layers));
}

template <class T>
void polynomial_value_and_grad(int layers, std::int64_t count, const T* rates, const T* eigenvalues,
                               const T* node_weights, T noise_var, T* loss, T* gradient, void* scratch) {
  constexpr int width = Polynomial<T>::width;
  Polynomial<T> polynomial(layers, rates, noise_var, aligned<T>(scratch));
  std::int64_t first = 0;
  for (; first + width <= count; first += width) polynomial.descend(eigenvalues + first, node_weights + first);
  if (first < count) {  // lanes beyond the end have no node_weight
    T last[width] = {}, last_weights[width] = {};
    std::memcpy(last, eigenvalues + first, sizeof(T) * (count - first));
    std::memcpy(last_weights, node_weights + first, sizeof(T) * (count - first));
    polynomial.descend(last, last_weights);
  }
  *loss = add_lanes<T>(polynomial.loss);
  for (int i = 0; i < 2 * layers; ++i) gradient[i] = add_lanes<T>(polynomial.gradient[i]);
}

template <class T>
std::size_t gram_scratch(int size) {
  return numbers<T>(Gram<T>::scratch(size));
}

template <class T>
void gram(int size, std::int64_t examples, std::int64_t count, const T* x, const T* y, T* out, void* scratch) {
  Gram<T> gram(size, aligned<T>(scratch));
  for_groups<T>(count, [&](std::int64_t group, int filled) {
    const T *own_x = x + group * examples * (size - 1), *own_y = y + group * examples;
    for (std::int64_t first = 0; first < examples; first += Gram<T>::block) {
      const int rows = (int)(examples - first < Gram<T>::block ? examples - first : Gram<T>::block);
      gram.load(own_x, own_y, examples, first, rows, filled);
      gram.add(rows, first == 0);
    }
    if (examples == 0) gram.add(0, true);  // the sum over no example is zero
    gram.mirror();
    store_lanes<T>(out + group * size * size, gram.sums, size * size, filled);
  });
}

template <class T>
constexpr Kernel<T> kernel = {Steps<Full, T>::family,  Steps<Diagonal, T>::family, full_states<T>,
                              polynomial_scratch<T>, polynomial_value_and_grad<T>,      gram_scratch<T>, gram<T>};

}  // namespace LINTRA_ISA

#define LINTRA_JOIN_(a, b, c) a##b##c
#define LINTRA_JOIN(a, b, c) LINTRA_JOIN_(a, b, c)
extern const Kernel<float>* const LINTRA_JOIN(lintra_, LINTRA_ISA, _f32) = &LINTRA_ISA::kernel<float>;
extern const Kernel<double>* const LINTRA_JOIN(lintra_, LINTRA_ISA, _f64) = &LINTRA_ISA::kernel<double>;
