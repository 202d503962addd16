"""Style sheets and scripts of the app and of its report, as files of their own.

Owns: reading one by name.
"""

from functools import cache
from pathlib import Path


@cache
def asset(name: str) -> str:
    """Return the text of a file in this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
