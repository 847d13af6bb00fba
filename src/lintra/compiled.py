"""Compiled programs, kept between one start and the next."""

import os
from pathlib import Path

import jax


def keep_compiled_programs() -> None:
    """Let JAX keep compiled programs in the user's cache folder, so that the next start is quick."""
    root = os.environ.get("LINTRA_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(Path(root) / "lintra"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
