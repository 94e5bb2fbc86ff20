"""Notifications to systemd: readiness, reloading, stopping, and that the reactor still turns.

See sd_notify(3). Everything is a no-op when the environment has no ``NOTIFY_SOCKET``.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping

from attrs import define
from twisted.logger import Logger

log = Logger()

_MICROSECONDS = 1_000_000


def monotonic_microseconds() -> int:
    """CLOCK_MONOTONIC as systemd counts it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


@define(eq=False)
class Notifier:
    """Notifies the service manager of the daemon's state by datagrams to ``address``.

    ``address`` is empty without a listener; a leading ``@`` names an abstract socket.
    """

    address: str = ""
    now: Callable[[], int] = monotonic_microseconds

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Notifier:
        """The one for the socket that systemd passed, if it did."""
        return cls(environment.get("NOTIFY_SOCKET", ""))

    def ready(self) -> None:
        """Requests are answered from now on, or again after a reload."""
        self._send("READY=1")

    def reloading(self) -> None:
        """A reload has begun; ``ready`` must follow, also when it failed."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={self.now()}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def watchdog(self) -> None:
        """The reactor turns."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """Show a line in ``systemctl status``."""
        self._send(f"STATUS={text}")

    def _send(self, message: str) -> None:
        if not self.address:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto(message.encode(), address)
        except OSError as error:
            log.warn("systemd was not notified: {error}", error=error.strerror)


def watchdog_interval(environment: Mapping[str, str] = os.environ) -> float | None:
    """Seconds between two signs of life: half of what systemd allows; None without watchdog."""
    pid = environment.get("WATCHDOG_PID", "")
    if pid and pid != str(os.getpid()):
        return None
    allowed = environment.get("WATCHDOG_USEC", "")
    if not (allowed.isascii() and allowed.isdigit()) or int(allowed) == 0:
        return None
    return int(allowed) / 2 / _MICROSECONDS
