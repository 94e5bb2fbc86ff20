"""The paths of the API for shell completion, from the declarations: ``monrest/cli/paths.txt``.

``python -m monrest.daemon.paths > monrest/cli/paths.txt``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from monrest.api.endpoint import Endpoint
from monrest.daemon.families import ENDPOINTS


def listing(endpoints: Sequence[Endpoint] = ENDPOINTS) -> str:
    """One path a line, sorted, with its variables in angle brackets."""
    paths = {endpoint.path for endpoint in endpoints} - {"/"}
    return "".join(f"{path}\n" for path in sorted(paths))


if __name__ == "__main__":
    sys.stdout.write(listing())
