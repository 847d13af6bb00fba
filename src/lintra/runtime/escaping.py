"""Text from files and names, made safe for the language that it is written into."""

import base64
import hashlib
import json
from typing import Any

_LONGEST = 200  # characters of a title; the longest name in the zoo has 28

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
}


def printable(text: str) -> str:
    r"""Replace characters that are not printable by their escape sequences, except for line breaks.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    r"""Replace characters that are not printable by their escape sequences, and shorten very long text.

    Line breaks, control characters, text direction marks and lone surrogates are not printable.

    >>> print(one_line("a\nb"))
    a\nb
    """
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return printable(short).replace("\n", "\\n")


def in_docstring(text: str) -> str:
    r"""Text for a docstring between three double quotes, which it cannot end.

    >>> print(in_docstring('a"b\\'))
    a\"b\\
    """
    return one_line(text).replace("\\", r"\\").replace('"', r"\"")


def in_latex(text: str) -> str:
    r"""Text for LaTeX, in which no character is a command and no line ends.

    >>> print(in_latex("50% of_it"))
    50\% of\_it
    """
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def json_in_page(value: Any) -> str:
    r"""JSON for a `<script>` element, which it cannot end. All characters are ASCII.

    >>> print(json_in_page("</script>"))
    "\u003c/script\u003e"
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def source_hash(content: str) -> str:
    """The name of an inline style or script in a content-security policy.

    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
