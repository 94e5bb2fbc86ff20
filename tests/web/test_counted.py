"""What is counted of requests is counted in bounded memory (docs/spec/metrics.md)."""

from tests.web.room import Room, asking


def counted(room):
    """How often each route was answered with each status."""
    return {
        labels[1:]: value
        for name, labels, value in room.site.measured()
        if name == "http_requests_total"
    }


def test_what_is_outside_of_the_root_is_not_the_root(clock):
    room = Room(clock, route=lambda segments: "" if any(segments) else "/")
    ask = asking(room)
    for path in ("/mon/r", "/mon/r/", "/nonsense", "/mon/r/nonsense"):
        ask(path)
    ask("/", headers={"Accept": "text/html"})
    assert counted(room) == {("/", "200"): 2, ("other", "404"): 1, ("other", "200"): 2}


def test_long_paths_that_somebody_makes_up_fill_no_memory(clock):
    room = Room(clock)
    ask = asking(room)
    for number in range(100):
        ask(f"/mon/r/{number}{'x' * 60_000}")
    assert counted(room) == {("other", "200"): 100}
