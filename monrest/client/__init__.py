"""A typed client of the API (docs/client.md).

``Client`` waits for answers, ``AsyncioClient`` is for asyncio: both need the standard library only.
``AsyncClient`` is for Twisted. Each is imported when its name is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monrest.client.api_client import AnsweredRows, BackgroundJob, Client, CommandOutcome
    from monrest.client.asyncio_client import AsyncioClient
    from monrest.client.clauses import Clause, ColumnName, column, where
    from monrest.client.event_tail import EventDocument
    from monrest.client.exchange import (
        ApiError,
        ClientError,
        ConflictError,
        IncompleteError,
        InvalidRequestError,
        NotAuthorizedError,
        NotThereError,
        OverloadedError,
        SitesFailedError,
        UnreachableError,
    )
    from monrest.client.twisted_client import AsyncClient

__all__ = [
    "AnsweredRows",
    "ApiError",
    "AsyncClient",
    "AsyncioClient",
    "BackgroundJob",
    "Clause",
    "Client",
    "ClientError",
    "ColumnName",
    "CommandOutcome",
    "ConflictError",
    "EventDocument",
    "IncompleteError",
    "InvalidRequestError",
    "NotAuthorizedError",
    "NotThereError",
    "OverloadedError",
    "SitesFailedError",
    "UnreachableError",
    "column",
    "where",
]

_MODULES = {
    "api_client": ("AnsweredRows", "BackgroundJob", "Client", "CommandOutcome"),
    "asyncio_client": ("AsyncioClient",),
    "clauses": ("Clause", "ColumnName", "column", "where"),
    "event_tail": ("EventDocument",),
    "twisted_client": ("AsyncClient",),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and nothing that the command line does not need."""
    if name not in __all__:
        raise AttributeError(name)
    from importlib import import_module

    modules = (module for module, names in _MODULES.items() if name in names)
    return getattr(import_module(f"monrest.client.{next(modules, 'exchange')}"), name)
