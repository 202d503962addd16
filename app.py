"""The frame of the browser app: page configuration, navigation, the line that says what is loaded.

Owns: what is around a page, and the order of a run. Run it with `streamlit run app.py` or `planner app`.
"""

import streamlit as st

from ui import guard, layout, navigation, pages, state, theme, widgets


def _head() -> None:
    state.sync()
    theme.apply_style(review=state.current().review)
    layout.loaded_line()
    layout.show_notices()


st.set_page_config(
    page_title="Inference planner",
    page_icon=str(pages.ROOT / "ui" / "assets" / "icon.svg"),
    layout="wide",
    initial_sidebar_state=220,
    menu_items={"About": "Analytic planner for LLM inference parallelism."},
)
guard.run(_head, place="head")
page = navigation.navigation(pages.available())
guard.run(page.run, place=page.url_path or "page")
widgets.take_unseen()
