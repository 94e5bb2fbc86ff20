"""The neutral words that a site may replace: path segment, header names, field prefixes.

`mon`, `dist` and `cm` stand in for product names (``[names]`` of the configuration); everything
that spells one of them asks here, so that a site which replaces another product changes three
words and nothing else.
"""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class Names:
    """``app``: path segment, header prefix and ``mon_`` fields; ``dist`` and ``cm``: fields."""

    app: str = "mon"
    dist: str = "dist"
    cm: str = "cm"

    @property
    def root(self) -> str:
        """The API's root path without a trailing slash, ``/mon/r``."""
        return f"/{self.app}/r"

    def own(self, name: str) -> str:
        """Spell a column with the site's words: ``mon_version``, ``dist_version``, ``cm_fqdn``."""
        first, *others = name.split("_")
        if others:
            first = {"dist": self.dist, "cm": self.cm}.get(first, first)
        return "_".join(self.app if word == "mon" else word for word in (first, *others))

    def header(self, name: str) -> str:
        """Spell a header of ours in lower case: ``Auth-Key`` becomes ``x-mon-auth-key``."""
        return f"x-{self.app}-{name}".lower()
