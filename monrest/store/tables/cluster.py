"""What daemons on one database have agreed upon: duties, nodes, restarts."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table, Text

from monrest.store.tables.base import metadata

duty_daemons = Table(
    "duty_daemons",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("beat", BigInteger, nullable=False),
)
"""Runs of daemons that hold duties; ``beat`` grows for as long as one lives."""

duties = Table(
    "duties",
    metadata,
    Column("name", Text, primary_key=True),
    Column("run", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
)
"""Which daemon does what; ``number`` grows whenever it is another one, 0 is no daemon."""

cluster_nodes = Table(
    "cluster_nodes",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("run", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Column("maintenance", BigInteger, nullable=False),
)
"""Nodes of the cluster, each of which writes its own line; ``url``
is empty until somebody has reached it, ``maintenance`` the time when it began, 0 for none."""

cluster_restarts = Table(
    "cluster_restarts",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("node", BigInteger, nullable=False),
    Column("run", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("changed", BigInteger, nullable=False),
)
"""The last restart of all nodes in the order in which they are restarted; ``run`` is what is to
end."""
