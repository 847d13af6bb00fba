// Gram matrices of tokens (x, y): examples are read a few at a time, one context per lane, and summed in tiles.
#pragma once

#include "products.hpp"

namespace LINTRA_ISA {

template <class T>
struct Gram {
  using V = Vec<T>;
  static constexpr int side = 4;    // of a tile
  static constexpr int block = 64;  // examples that are held at once

  int size;
  V *tokens, *sums;  // block x size, and size x size

  static std::size_t scratch(int size) { return (std::size_t)size * (block + size); }

  Gram(int size, V* memory) : size(size), tokens(memory), sums(memory + (std::size_t)block * size) {}

  // Tokens of examples first ... first + rows of every context
  void load(const T* x, const T* y, std::int64_t examples, std::int64_t first, int rows, int filled) {
    constexpr int width = Lanes<T>::width;
    const int dim = size - 1;
    T* numbers = reinterpret_cast<T*>(tokens);
    for (int lane = 0; lane < filled; ++lane) {
      const T *own_x = x + (lane * examples + first) * dim, *own_y = y + lane * examples + first;
      for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < dim; ++j) numbers[(r * size + j) * width + lane] = own_x[r * dim + j];
        numbers[(r * size + dim) * width + lane] = own_y[r];
      }
    }
  }

  template <int tall, int wide>
  void tile(int i0, int j0, int rows, bool begin) {
    V sum[tall][wide];
    for (int i = 0; i < tall; ++i)
      for (int j = 0; j < wide; ++j) sum[i][j] = begin ? V{} : sums[(i0 + i) * size + j0 + j];
    for (int r = 0; r < rows; ++r) {
      const V* token = tokens + r * size;
      for (int i = 0; i < tall; ++i)
        for (int j = 0; j < wide; ++j) sum[i][j] += token[i0 + i] * token[j0 + j];
    }
    for (int i = 0; i < tall; ++i)
      for (int j = 0; j < wide; ++j) sums[(i0 + i) * size + j0 + j] = sum[i][j];
  }

  // The lower triangle, in whole tiles and at its edge in single rows
  void add(int rows, bool begin) {
    const int whole = size / side * side;
    for (int i = 0; i < whole; i += side)
      for (int j = 0; j <= i; j += side) tile<side, side>(i, j, rows, begin);
    for (int i = whole; i < size; ++i) {
      for (int j = 0; j < whole; j += side) tile<1, side>(i, j, rows, begin);
      for (int j = whole; j <= i; ++j) tile<1, 1>(i, j, rows, begin);
    }
  }

  void mirror() {
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < i; ++j) sums[j * size + i] = sums[i * size + j];
  }
};

}  // namespace LINTRA_ISA
