"""The explorer page as it is published."""

from functools import cache
from pathlib import Path

from lintra import zoo
from lintra.explorer.curves import read_curves
from lintra.explorer.page import page as fill_page

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "explorer"
ZOO = ROOT / "src/lintra/data/zoo.safetensors"


@cache
def published_page():
    """The page of the published models."""
    return fill_page(zoo.published(), read_curves(ZOO))
