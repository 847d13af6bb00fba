"""Doctests in docstrings as blocks of code, which the API pages would take for quotations."""

import re
from typing import Any

import griffe

_BLOCK = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(griffe.Extension):
    """Puts every doctest between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, a class, a function or an attribute."""
        if obj.docstring:
            obj.docstring.value = _BLOCK.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
