"""What of a configuration cannot change while the daemon runs."""

from __future__ import annotations

from monrest.config.sections import Config


def fixed_while_running(old: Config, new: Config) -> list[str]:
    """Name what differs and cannot change in a running daemon."""
    fixed = (
        ("server.listen", old.server.listen, new.server.listen),
        ("server.workers", old.server.workers, new.server.workers),
        ("server.var_dir", old.server.var_dir, new.server.var_dir),
        ("database.url", old.database.url, new.database.url),
        ("logcache.url", old.logcache.url, new.logcache.url),
    )
    return [
        f"{path}: cannot change while the daemon runs, restart it"
        for path, before, after in fixed
        if before != after
    ]
