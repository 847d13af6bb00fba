"""Gradient descent from several starts at once."""
