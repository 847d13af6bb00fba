"""The native kernel in C++, called by XLA; it takes and gives arrays."""
