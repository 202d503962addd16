"""Which pages there are, in order.

Owns: the list that `app.py` and the tests read. A page is a file `pages/<name>/page.py`; one that is not
there is not shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class PageEntry:
    """One page: its folder and path in the URL, its title, and what it is for."""

    name: str
    title: str
    purpose: str

    @property
    def file(self) -> Path:
        """The script of the page."""
        return ROOT / "pages" / self.name / "page.py"

    @property
    def exists(self) -> bool:
        """True where the page has been written."""
        return self.file.is_file()


PAGES: tuple[PageEntry, ...] = (
    PageEntry("run_spec", "Run spec", "Choose the model, the machine and the targets"),
    PageEntry("serving_plan", "Serving plan", "Which config to serve with, and why"),
    PageEntry("auto_explore", "Auto Explore", "Sweep nine axes; the Pareto front and its sensitivity"),
    PageEntry("cell", "Cell", "One operating point, component by component"),
    PageEntry("compare", "Compare", "Two to four points side by side"),
    PageEntry("oracle", "Oracle", "Check the counts against torch"),
    PageEntry("method", "Method", "The formulas, the constants and their sources"),
)


def available() -> tuple[PageEntry, ...]:
    """Return the pages that are there."""
    return tuple(page for page in PAGES if page.exists)
