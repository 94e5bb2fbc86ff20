"""Arguments of commands as a request has them."""


def values_of(given):
    """Parameters as a request has them: each with all of its values."""
    return {
        name: (sent,) if isinstance(sent, str) else sent
        for name, sent in given.items()
        if sent is not None
    }
