"""Where the files that ship with the planner lie: presets and the browser app.

Owns one question, "checkout or installed wheel?", so that nobody else asks it. Reads nothing.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped_root() -> Path:
    """Return the folder that holds ``presets/`` and ``app.py``.

    In a checkout that is the repository's root; in an installed wheel it is a folder inside the package.

    Returns
    -------
    Path
        An absolute path. It is never written to.

    Examples
    --------
    >>> (shipped_root() / "presets").name
    'presets'
    """
    inside_wheel = _PACKAGE / "_shipped"
    return inside_wheel if inside_wheel.is_dir() else _PACKAGE.parent
