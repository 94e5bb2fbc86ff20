"""Results that do not come from a server: shell commands, and what makes others of answers."""

from __future__ import annotations

from monrest.client.client_problems import ClientError, plain


def output_of(command: str, timeout: float, given: bytes | None = None) -> bytes:
    """What a shell command prints; ``given`` is its standard input, None: nothing.

    Raises ClientError when it ends with another status than 0, or not within ``timeout`` seconds.
    """
    import subprocess

    try:
        ran = subprocess.run(  # noqa: S603  the user's own command
            ["/bin/sh", "-c", command],
            input=b"" if given is None else given,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClientError(f"{command}: did not end within {timeout:g} seconds") from None
    except (OSError, ValueError) as error:
        raise ClientError(f"{command}: {error}") from None
    if ran.returncode:
        told = plain(ran.stderr.decode("utf-8", "replace")).strip()
        raise ClientError(
            f"{command}: ended with status {ran.returncode}{': ' if told else ''}{told}"
        )
    return ran.stdout
