"""Tutorials are Python files that run when the documentation is built: text in comments, and what they print.

A page `tutorials/name.md` holds its title and the line `{{ name.py }}`. The file `examples/name.py` is cut at
blank lines before comments in the first column: such a comment is text, what follows it is code, and what the code
prints is shown below it.
"""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
_DIRECTIVE = re.compile(r"^\{\{ (\w+\.py) \}\}$", re.MULTILINE)
_CELL = re.compile(r"\n(?=\n# )")


def cells(source: str) -> list[tuple[str, str]]:
    """Pairs of text and code."""
    pairs = []
    for part in _CELL.split(source.strip() + "\n"):
        lines = part.strip("\n").split("\n")
        count = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:count])
        pairs.append((text, "\n".join(lines[count:]).strip("\n")))
    return pairs


def run(path: Path) -> str:
    """The file as Markdown, with what it prints."""
    names: dict[str, object] = {"__name__": "__main__"}
    parts = []
    for text, code in cells(path.read_text()):
        parts.append(text)
        if not code:
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(path), "exec"), names)
        parts.append(f"```python\n{code}\n```")
        if printed.getvalue():
            parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put tutorials where pages ask for them."""
    return _DIRECTIVE.sub(lambda found: run(EXAMPLES / found[1]), markdown)
