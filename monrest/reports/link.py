"""The URL of a report over the API itself (docs/spec/reports.md, "A path of the API"). Pure."""

from __future__ import annotations

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Parameters
from monrest.query.target import PathTarget, parameters, target

_EXPECTED = "a path of this API, such as /mon/r/csv/hosts?columns=name,state"
_FORMS = {"csv": "csv", "xls": "xls", "text": "text"}


@frozen(kw_only=True)
class Link:
    """``root`` is what stands in front of the API's own path, to be compared with the real one."""

    text: str
    root: str
    target: PathTarget
    parameters: Parameters

    @property
    def form(self) -> str:
        """What its answer is: csv, xls, text or json."""
        return _FORMS.get(self.target.format or "", "json")


def read_link(text: str) -> Link:
    """Read a URL without scheme and host; ValueError says what was expected.

    Other servers are never asked: whoever writes a report could make this one ask them with its
    own rights.
    """
    if not text.startswith("/") or text.startswith("//"):
        raise ValueError(_EXPECTED)
    whole, _, query = text.partition("?")
    app, _, rest = whole[1:].partition("/")
    mark, _, path = rest.partition("/")
    if not app or mark != "r":
        raise ValueError(_EXPECTED)
    try:
        return Link(
            text=text,
            root=f"/{app}/{mark}",
            target=target(path),
            parameters=parameters(query.encode("utf-8"), "url"),
        )
    except BadRequest as error:
        raise ValueError(f"{_EXPECTED}: {error.description}") from None
