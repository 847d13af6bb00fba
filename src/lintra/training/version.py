"""Version of the training code."""

TRAINING_VERSION = 1
"""Number of the present training code, part of every hash and settings file under which results are kept.

Raise it by one whenever the same model, recipe and key give other numbers than before: after a change of a stage,
of a recipe's constants, of an optimiser, of the sampling of sequences or of the use of keys. Then cells of a sweep
and cached specialists of other versions are not found and are trained again, and run folders of other versions are
rejected. `tests/training/test_version.py` pins the numbers of tiny models and fails until this is done.
"""
