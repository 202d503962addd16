"""What the browser app's pages share: state, links, theme, widgets, figures, tables, exports.

Owns: everything of the app that is not one page's. See README.md in this folder for how a page uses it.
Refuses: formulas; a number comes from `planner_core`.
"""
