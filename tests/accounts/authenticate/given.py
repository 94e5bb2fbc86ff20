"""What callers give."""

import base64

PROXY = "10.0.0.1"


def basic(user, password):
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
