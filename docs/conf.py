"""How the book is built: ``make docs``, then open docs/_build/index.html."""

from monrest import __version__

project = "monrest"
author = "the monrest authors"
release = __version__

extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"monrest {release}"
html_static_path = ["images"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
# Code without a language is a shell, an answer or a configuration.
highlight_language = "none"
