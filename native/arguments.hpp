// The checks of a call's buffers. A shape that does not fit becomes an error of XLA, not a read out of bounds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// The kernels index their scratch memory by int, in numbers: layers x size x size vectors of at most 16 lanes.
constexpr std::int64_t kMostVectors = std::numeric_limits<int>::max() / 16;

// Compares buffers with the shapes that a handler expects, and keeps the sentence about the one that differs.
// Every method tells whether the buffer is right. It costs a few comparisons, and no memory unless it is wrong.
class Arguments {
 public:
  template <class Buffer>
  bool rank(const char* name, const Buffer& buffer, std::size_t expected) {
    if (buffer.dimensions().size() == expected) return true;
    return fail(std::string("`") + name + "` must have " + std::to_string(expected) + " axes, got shape " +
                text(buffer.dimensions()) + ".");
  }

  template <class Buffer>
  bool shape(const char* name, const Buffer& buffer, std::initializer_list<std::int64_t> expected) {
    if (agrees(buffer.dimensions(), expected)) return true;
    return fail(name, text(expected), buffer.dimensions());
  }

  // The first axis of data is 1 where all sets share it. `expected` has the number of sets there.
  template <class Buffer>
  bool data(const char* name, const Buffer& buffer, std::initializer_list<std::int64_t> expected) {
    const auto own = buffer.dimensions();
    const bool shared = own.size() > 0 && own[0] == 1;
    if (agrees(own, expected, shared ? 1 : 0)) return true;
    return fail(name, text(expected) + ", or the same with a first axis of 1", own);
  }

  // Sizes that a kernel takes as int. `size` is d + 1.
  bool sizes(std::int64_t layers, std::int64_t heads, std::int64_t size) {
    if (layers < 1 || heads < 1 || size < 2)
      return fail("A model must have at least one layer, one head and one input, got " + std::to_string(layers) +
                  " layers, " + std::to_string(heads) + " heads and Gram matrices of " + std::to_string(size) +
                  " rows.");
    // By division, since the products may exceed 64 bits
    if (heads <= kMostVectors / layers && size <= kMostVectors / layers / size) return true;
    return fail(std::to_string(layers) + " layers with " + std::to_string(heads) + " heads and Gram matrices of " +
                std::to_string(size) + " rows are too many: layers x heads and layers x rows x rows must be at most " +
                std::to_string(kMostVectors) + ".");
  }

  ffi::Error error() const { return ffi::Error::InvalidArgument("lintra's native kernel: " + sentence_); }

 private:
  template <class Own, class Expected>
  static bool agrees(const Own& own, const Expected& expected, std::size_t first = 0) {
    if (own.size() != expected.size()) return false;
    for (std::size_t i = first; i < own.size(); ++i)
      if (own[i] != expected.begin()[i]) return false;
    return true;
  }

  template <class Dimensions>
  static std::string text(const Dimensions& dimensions) {
    std::string all;
    for (std::int64_t size : dimensions) all += (all.empty() ? "" : ", ") + std::to_string(size);
    return "(" + all + (dimensions.size() == 1 ? ",)" : ")");
  }

  template <class Own>
  bool fail(const char* name, const std::string& expected, const Own& own) {
    return fail(std::string("`") + name + "` must have shape " + expected + ", got " + text(own) + ".");
  }

  bool fail(std::string sentence) {
    sentence_ = std::move(sentence);
    return false;
  }

  std::string sentence_;
};

// Calls a handler. Lack of memory becomes an error of XLA as well, since XLA's own code knows no exceptions.
template <auto handler>
struct Guarded;

template <class... Buffers, ffi::Error (*handler)(Buffers...)>
struct Guarded<handler> {
  static ffi::Error call(Buffers... buffers) {
    try {
      return handler(buffers...);
    } catch (const std::bad_alloc&) {
      return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                        "lintra's native kernel has no memory for its intermediate results; use fewer sequences, "
                        "heads or layers at a time.");
    }
  }
};
