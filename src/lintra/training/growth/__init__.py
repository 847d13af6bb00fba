"""Depth continuation: layers added one at a time by second-order fits."""
