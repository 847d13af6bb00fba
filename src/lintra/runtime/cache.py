"""The user's cache folder, and JAX's compilation cache in it."""

import os
from pathlib import Path

import jax


def cache_folder() -> Path:
    """Where lintra keeps what it can make again."""
    root = os.environ.get("LINTRA_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "lintra"


def enable_compilation_cache() -> None:
    """Let JAX keep compiled programs in the user's cache folder, so that the next start is quick."""
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
