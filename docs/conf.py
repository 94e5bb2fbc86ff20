"""How the book is built: ``make docs``, then open docs/_build/index.html."""

import re
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

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
html_favicon = "../monrest/web/files/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
highlight_language = "none"


def setup(app: Sphinx) -> None:
    """Know the languages of examples that have no colours, and mend each page once it is there."""
    for name in ("nagios", "icinga2", "haproxy"):
        app.add_lexer(name, TextLexer)
    app.connect("build-finished", mend)


def mend(app: Sphinx, error: Exception | None) -> None:
    """Mend what the theme writes for a page of the daemon (docs/spec/http.md, "Pages").

    Its inline script and styles become files, because browsers run no others there, and headings
    without a level get one.
    """
    if error is not None:
        return
    folder = Path(app.outdir)
    for page in folder.rglob("*.html"):
        static = "../" * (len(page.relative_to(folder).parts) - 1) + "_static/"
        text = page.read_text("utf-8")
        for tag, name, link in (
            ("script", "theme.js", f'<script src="{static}theme.js"></script>'),
            ("style", "code.css", f'<link rel="stylesheet" href="{static}code.css">'),
        ):
            for inline in re.findall(rf"<{tag}>.*?</{tag}>", text, re.DOTALL):
                (folder / "_static" / name).write_text(
                    inline[len(tag) + 2 : -len(tag) - 3], "utf-8"
                )
                text = text.replace(inline, link)
        text = text.replace('role="heading"', 'role="heading" aria-level="2"')
        text = re.sub(r' style="(display|opacity): ([^";]+);?"', r' \1="\2"', text)
        page.write_text(text, "utf-8")
