// A check of the kernels that needs neither XLA nor Python, so that it can run on other processors (`make arm`).
//
// Every vector width is compared with plain loops in double precision, one sequence at a time: weights directly, and
// gradients by differences along a random direction.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "kernel.hpp"

#define LINTRA_DECLARE(isa)                             \
  extern const Kernel<float>* const lintra_##isa##_f32; \
  extern const Kernel<double>* const lintra_##isa##_f64;
LINTRA_DECLARE(w8)  // one double
LINTRA_DECLARE(w16)
LINTRA_DECLARE(w32)
LINTRA_DECLARE(w64)

using Numbers = std::vector<double>;
using Loss = std::function<double(const Numbers&)>;

int passed = 0, failed = 0;

void expect(bool close, const char* what, const char* width, bool single, Shape s, double error) {
  ++(close ? passed : failed);
  if (!close)
    std::printf("FAILED %s %s %s layers=%d heads=%d size=%d error=%.2g\n", what, width, single ? "float" : "double",
                s.layers, s.heads, s.size, error);
}

Numbers normal(std::mt19937& generator, std::size_t count, double scale) {
  std::normal_distribution<double> draw(0, scale);
  Numbers numbers(count);
  for (double& number : numbers) number = draw(generator);
  return numbers;
}

Numbers times(const Numbers& a, const Numbers& b, int size) {
  Numbers out(size * size);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j)
      for (int k = 0; k < size; ++k) out[i * size + j] += a[i * size + k] * b[k * size + j];
  return out;
}

Numbers transpose(const Numbers& a, int size) {
  Numbers out(size * size);
  for (int i = 0; i < size * size; ++i) out[i % size * size + i / size] = a[i];
  return out;
}

// The part of a layer that is added to the identity: sum_k P_k G Q_k, or for DIAG each block of G by its own number
Numbers attention(bool full, Shape s, const Numbers& parameters, int layer, const Numbers& gram) {
  const int size = s.size, square = size * size;
  Numbers out(square);
  if (!full)
    for (int i = 0; i < square; ++i)
      out[i] = parameters[4 * layer + 2 * (i / size == size - 1) + (i % size == size - 1)] * gram[i];
  for (int head = 0; full && head < s.heads; ++head) {
    const auto p = parameters.begin() + (layer * s.heads + head) * square, q = p + s.layers * s.heads * square;
    const Numbers move = times(times(Numbers(p, p + square), gram, size), Numbers(q, q + square), size);
    for (int i = 0; i < square; ++i) out[i] += move[i];
  }
  return out;
}

double input_trace(const Numbers& gram, int size) {
  double sum = 0;
  for (int i = 0; i + 1 < size; ++i) sum += gram[i * size + i];
  return sum;
}

// (tr S^4)^(1/4)
double input_norm(const Numbers& gram, int size) {
  Numbers inputs = gram;
  for (int i = 0; i < size; ++i) inputs[i * size + size - 1] = inputs[(size - 1) * size + i] = 0;
  const Numbers square = times(inputs, inputs, size);
  return std::pow(input_trace(times(square, square, size), size), 0.25);
}

Numbers divided(Numbers numbers, double by) {
  for (double& number : numbers) number /= by;
  return numbers;
}

// Ranges are rho, kappa and trace of every layer
Numbers weights(bool full, Shape s, const Numbers& parameters, const Numbers& ranges, Numbers gram) {
  const int size = s.size;
  Numbers moved(size * size);
  for (int i = 0; i < size; ++i) moved[i * size + i] = 1;
  const double norm = std::min(input_norm(gram, size) / ranges[0], 1.2);
  gram = divided(gram, std::max({1.0, input_trace(gram, size) / ranges[2], norm}));
  for (int layer = 0; layer < s.layers; ++layer) {
    const double inputs = input_norm(gram, size) / ranges[3 * layer], labels = gram.back() / ranges[3 * layer + 1];
    Numbers t = attention(full, s, parameters, layer, divided(gram, std::max({1.0, inputs, labels})));
    for (int i = 0; i < size; ++i) t[i * size + i] += 1;
    gram = times(times(t, gram, size), transpose(t, size), size);
    moved = times(t, moved, size);
  }
  Numbers out(size - 1);
  for (int i = 0; i + 1 < size; ++i) out[i] = -moved[(size - 1) * size + i];
  return out;
}

// The gradient along a direction, by central differences of fourth order: these losses bend too much for second order
double along(const Loss& loss, const Numbers& at, const Numbers& direction) {
  const double step = 1e-7;  // small, since the divisor of damping has kinks
  const auto moved = [&](double steps) {
    Numbers there = at;
    for (std::size_t i = 0; i < at.size(); ++i) there[i] += steps * step * direction[i];
    return loss(there);
  };
  return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step);
}

template <class T>
std::vector<T> rounded(const Numbers& numbers) {
  return std::vector<T>(numbers.begin(), numbers.end());
}

double distance(double a, double b) { return std::abs(a - b) / (1 + std::abs(b)); }

template <class T>
void check_family(const Kernel<T>& kernel, const char* width, bool full, bool damped, Shape s) {
  const Family<T>& family = full ? kernel.full : kernel.diagonal;
  const int size = s.size, dim = size - 1, count = 13;  // not a whole number of vectors
  const bool single = std::is_same_v<T, float>;
  std::mt19937 generator(size + 100 * s.layers);
  const Numbers parameters = normal(generator, full ? 2 * s.layers * s.heads * size * size : 4 * s.layers, 0.3 / size);
  Numbers grams, ranges(3 * s.layers, std::numeric_limits<double>::infinity());
  if (damped)  // about half of the sequences are outside of the range
    for (int i = 0; i < 3 * s.layers; ++i) ranges[i] = (i % 3 == 2 ? 0.9 * size : i % 3 ? 0.8 : 1.8) * size;
  for (int sequence = 0; sequence < count; ++sequence) {
    const Numbers x = normal(generator, size * size, 1), gram = times(x, transpose(x, size), size);
    grams.insert(grams.end(), gram.begin(), gram.end());
  }
  const Numbers target = normal(generator, count * dim, 1), direction = normal(generator, parameters.size(), 1);
  const auto gram_of = [&](int sequence) {
    return Numbers(grams.begin() + sequence * size * size, grams.begin() + (sequence + 1) * size * size);
  };
  const Loss loss = [&](const Numbers& at) {
    double sum = 0;
    for (int sequence = 0; sequence < count; ++sequence) {
      const Numbers w = weights(full, s, at, ranges, gram_of(sequence));
      for (int i = 0; i < dim; ++i) sum += 0.5 * std::pow(w[i] - target[sequence * dim + i], 2);
    }
    return sum;
  };

  const auto p = rounded<T>(parameters), r = rounded<T>(ranges), g = rounded<T>(grams), t = rounded<T>(target);
  std::vector<T> out(count * dim), losses(count), gradient(p.size() * (full ? 1 : count)), memory(family.scratch(s));
  family.forward(s, count, p.data(), r.data(), g.data(), out.data(), memory.data());
  double error = 0;
  for (int sequence = 0; sequence < count; ++sequence) {
    const Numbers w = weights(full, s, parameters, ranges, gram_of(sequence));
    for (int i = 0; i < dim; ++i) error = std::max(error, distance(out[sequence * dim + i], w[i]));
  }
  expect(error < (single ? 1e-4 : 1e-12), full ? "full forward" : "diagonal forward", width, single, s, error);

  family.value_and_grad(s, count, p.data(), r.data(), g.data(), t.data(), T(0), losses.data(), gradient.data(),
                        memory.data());
  double sum = 0, change = 0;
  for (T value : losses) sum += value;
  for (std::size_t i = 0; i < gradient.size(); ++i) change += gradient[i] * direction[i % p.size()];
  error = std::max(distance(sum, loss(parameters)), distance(change, along(loss, parameters, direction)));
  expect(error < (single ? 1e-3 : 1e-6), full ? "full value_and_grad" : "diagonal value_and_grad", width,
         single, s, error);
}

template <class T>
void check_polynomial(const Kernel<T>& kernel, const char* width, int layers) {
  const int count = 301;
  const bool single = std::is_same_v<T, float>;
  std::mt19937 generator(layers);
  const Numbers rates = normal(generator, 2 * layers, 0.1), direction = normal(generator, 2 * layers, 1);
  Numbers eigenvalues = normal(generator, count, 1), node_weights = normal(generator, count, 1);
  for (double& s : eigenvalues) s *= s;
  const Loss loss = [&](const Numbers& at) {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      double m = 1, f = 0;
      const double s = eigenvalues[i];
      for (int l = 0; l < layers; ++l) {
        f -= at[2 * l + 1] * m * m * (1 - s * f);
        m *= 1 + at[2 * l] * m * m * s;
      }
      sum += 0.5 * node_weights[i] * ((1 - s * f) * (1 - s * f) + 0.4 * s * f * f);
    }
    return sum;
  };
  const auto r = rounded<T>(rates), e = rounded<T>(eigenvalues), node_weight = rounded<T>(node_weights);
  std::vector<T> gradient(2 * layers), memory(kernel.polynomial_scratch(layers));
  T value = 0;
  kernel.polynomial_value_and_grad(layers, count, r.data(), e.data(), node_weight.data(), T(0.4), &value,
                                   gradient.data(), memory.data());
  double change = 0;
  for (int i = 0; i < 2 * layers; ++i) change += gradient[i] * direction[i];
  const double error = std::max(distance(value, loss(rates)), distance(change, along(loss, rates, direction)));
  expect(error < (single ? 1e-3 : 1e-6), "polynomial value_and_grad", width, single, {layers, 1, 0}, error);
}

template <class T>
void check_gram(const Kernel<T>& kernel, const char* width, int size, int examples) {
  const int count = 21, dim = size - 1;
  const bool single = std::is_same_v<T, float>;
  std::mt19937 generator(size + examples);
  const Numbers x = normal(generator, count * examples * dim, 1), y = normal(generator, count * examples, 1);
  const auto own_x = rounded<T>(x), own_y = rounded<T>(y);
  std::vector<T> result(count * size * size), memory(kernel.gram_scratch(size));
  kernel.gram(size, examples, count, own_x.data(), own_y.data(), result.data(), memory.data());
  double error = 0;
  for (int c = 0; c < count; ++c)
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        double sum = 0;
        for (int r = 0; r < examples; ++r) {
          const int row = c * examples + r;
          sum += (i < dim ? x[row * dim + i] : y[row]) * (j < dim ? x[row * dim + j] : y[row]);
        }
        error = std::max(error, distance(result[(c * size + i) * size + j], sum));
      }
  expect(error < (single ? 1e-4 : 1e-12), "gram", width, single, {0, examples, size}, error);
}

template <class T>
void check(const Kernel<T>& kernel, const char* width) {
  for (int size : {2, 3, 5, 11, 12, 17})
    for (int examples : {1, 20, 64, 150}) check_gram(kernel, width, size, examples);
  for (int size : {2, 3, 5, 11, 12, 17})
    for (int layers : {1, 4})
      for (bool damped : {false, true}) {
        check_family(kernel, width, true, damped, {layers, 1, size});
        check_family(kernel, width, true, damped, {layers, 2, size});
        check_family(kernel, width, false, damped, {layers, 1, size});
      }
  for (int layers : {1, 7}) check_polynomial(kernel, width, layers);
}

int main() {
  check(*lintra_w8_f32, "w8"), check(*lintra_w16_f32, "w16");
  check(*lintra_w32_f32, "w32"), check(*lintra_w64_f32, "w64");
  check(*lintra_w8_f64, "w8"), check(*lintra_w16_f64, "w16");
  check(*lintra_w32_f64, "w32"), check(*lintra_w64_f64, "w64");
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
