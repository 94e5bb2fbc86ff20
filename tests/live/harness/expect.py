"""What the primed site looks like through the API, and how a refusal looks."""

HOSTS = ("db01", "leaf01", "pend01", "router1", "web01", "web02")
HOST_STATES = {"db01": 0, "leaf01": 2, "pend01": 0, "router1": 1, "web01": 0, "web02": 1}
SEMICOLON = "C:\\ used; 5%"
SIZES = "Größe ü/€"
SERVICES = (
    ("db01", "Disk /var", 1),
    ("db01", "ping", 0),
    ("pend01", "ping", 0),
    ("router1", "ping", 2),
    ("router1", "uplink 1+1", 3),
    ("web01", SEMICOLON, 0),
    ("web01", SIZES, 0),
    ("web01", "http", 2),
    ("web01", "ping", 0),
    ("web02", "http", 1),
    ("web02", "ping", 2),
)
"""Host, description and reported state, in the default order."""

ODD = [
    *(" ", "  web01  ", "'", '"', "\\", "\\n", "%", "%00", ";", "#", "$", "`", "{}", "[]", "()"),
    *("*", "?", ".*", "^", "😀", "ü", "\u2028", "\u00a0", "\ufeff", "a" * 3000, "-1", "nan", "inf"),
    *(
        "1e400",
        "-1e400",
        "0x10",
        "1_000",
        "99999999999999999999999",
        "null",
        "true",
        "''",
        "=",
        "!",
    ),
    *("<script>", "../../etc/passwd", "$(id)", "{{7*7}}", "%s%s%s%n", "\u202e", "\ud7ff", "٣"),
]
"""Values that mean nothing or too much; none of them may do harm anywhere."""


def refused(response, status=400, *words):
    """The answer is an error document of that status whose texts contain ``words``."""
    assert response.status == status, response
    assert response.type == "application/json", response
    document = response.json
    assert document.pop("failed") is True, response
    assert set(document) == {"code", "message", "description"}, response
    assert document["code"] == status
    assert isinstance(document["message"], str)
    assert document["message"]
    assert isinstance(document["description"], str)
    assert document["description"], response
    assert "Traceback" not in document["description"]
    assert 'File "' not in document["description"]
    text = f"{document['message']} {document['description']}"
    for word in words:
        assert word in text, response
    return document
