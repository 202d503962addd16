"""Put the app and the presets into a wheel, and leave an editable install pointing at the checkout."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = ("app.py", "pages", "ui", "presets", ".streamlit/config.toml")


class ShippedFiles(BuildHookInterface):
    """Adds what planner_core.shipped_files looks for inside an installed package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files and their place in the wheel; ``version`` is "standard" or "editable"."""
        if version == "standard":
            build_data["force_include"].update({name: f"planner_core/_shipped/{name}" for name in SHIPPED})
