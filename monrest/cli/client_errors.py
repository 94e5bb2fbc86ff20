"""What ends a run of the command besides a failed request, and with what exit status."""

from __future__ import annotations

from monrest.client.client_problems import ClientError

FAILED = 1
"""Exit status where something was tried and did not work."""

USAGE = 2
"""Exit status of a wrong command line."""

UNKNOWN = 3
"""Exit status of both for a monitoring core, to which 1 and 2 are states."""


class UsageError(ClientError):
    """The command line is wrong; the text says what was expected."""


class OutputClosedError(Exception):
    """The reader of standard output has stopped reading."""
