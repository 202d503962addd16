"""The planner's core: physics, sweeps and file formats, with no browser in it."""

__version__ = "0.1.0"
