"""Rows as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    r"""Rows that all have the same columns, under a line with their names.

    >>> to_csv([{"layers": 1, "loss": 0.5}, {"layers": None, "loss": 0.25}])
    'layers,loss\n1,0.5\n,0.25\n'
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
