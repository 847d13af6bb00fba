"""This machine: files, caches, processes, interrupts, memory, progress."""
