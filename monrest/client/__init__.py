"""A typed client of the API (docs/client.md).

``Client`` waits for answers and needs the standard library only; ``AsyncioClient`` is for asyncio
and needs httpx, ``AsyncClient`` is for Twisted. Each is imported when its name is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monrest.client.asynchronous import AsyncClient
    from monrest.client.asyncio_client import AsyncioClient
    from monrest.client.blocking import BackgroundJob, Client
    from monrest.client.clauses import Clause, ColumnName, column, where
    from monrest.client.client_problems import (
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
    from monrest.client.event_tail import EventDocument
    from monrest.client.operations import AnsweredRows, CommandFate

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
    "CommandFate",
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
    "asynchronous": ("AsyncClient",),
    "asyncio_client": ("AsyncioClient",),
    "blocking": ("BackgroundJob", "Client"),
    "event_tail": ("EventDocument",),
    "clauses": ("Clause", "ColumnName", "column", "where"),
    "operations": ("CommandFate", "AnsweredRows"),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and nothing that the command line does not need."""
    if name not in __all__:
        raise AttributeError(name)
    from importlib import import_module

    found = (module for module, names in _MODULES.items() if name in names)
    return getattr(import_module(f"monrest.client.{next(found, 'client_problems')}"), name)
