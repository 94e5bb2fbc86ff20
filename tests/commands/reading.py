"""Arguments of commands: samples of each type, and what a request has of them."""

VALUES = {
    "boolean": "1",
    "integer": "1",
    "timestamp": "1795000000",
    "duration": "60",
    "timeperiod": "24x7",
    "hostgroup": "web",
}


def sample(command, **given):
    """A value for each argument; ``given`` may have others by type or by name."""
    values = {**VALUES, "end_time": "1795003600", **given}
    return {
        one.name: values.get(one.name) or values.get(one.type, f"<{one.name}>")
        for one in command.arguments
    }


def values_of(given):
    """Parameters as a request has them: each with all of its values."""
    return {
        name: (sent,) if isinstance(sent, str) else sent
        for name, sent in given.items()
        if sent is not None
    }
