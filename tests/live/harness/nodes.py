"""Several daemons as one cluster on one PostgreSQL."""

import secrets
import signal
from functools import cached_property

import psycopg

from .daemon import Daemon
from .proxy import Line
from .waiting import until


class Nodes:
    """``count`` nodes in front of ``sites``; each reaches the database and is reached over a line.

    They are of the ``kind`` of daemons. ``to_database`` and ``to_node`` are these lines, in the order of the nodes.
    """

    def __init__(self, folder, server, sites, count=3, kind=Daemon, **sections):
        self.server = server
        self.name = server.create()
        self.to_database, self.nodes = [], []
        key = secrets.token_hex(32) + "_1"
        for at in range(count):
            own = folder / f"node{at}"
            own.mkdir()
            (own / "secret.key").write_text(key)
            (own / "pg").mkdir(mode=0o755)
            self.to_database.append(
                Line(server.folder / ".s.PGSQL.5432", own / "pg" / ".s.PGSQL.5432")
            )
            url = f"postgresql+psycopg://postgres@/{self.name}?host={own / 'pg'}"
            more = {"database": {"url": url}, **sections}
            self.nodes.append(kind(own, sites, sections=more))
        self.to_node = [Line(node.port) for node in self.nodes]
        self.urls = [f"http://127.0.0.1:{line.port}" for line in self.to_node]
        for node in self.nodes:
            node.sections.setdefault("cluster", {}).update(
                {"nodes": self.urls, "heartbeat_interval": 1.0}
            )
            node.write_config()

    def start(self):
        for node in self.nodes:
            node.start()
        until(self.all_known, "all nodes know each other")
        return self

    def all_known(self):
        return all(
            row["version"] and row["node_id"].isdigit() and not row["last_error"]
            for node in self.nodes
            for row in rows(node)
        )

    def close(self):
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
            node.stop(signal.SIGKILL)
        for line in (*self.to_database, *self.to_node):
            line.close()
        self.connection.close()

    def id_of(self, at):
        """The id of a node, as it is on its disk; empty before its first start."""
        file = self.nodes[at].folder / "var" / "node.id"
        return file.read_text().strip() if file.exists() else ""

    @cached_property
    def connection(self):
        """To the database beside all lines; one for all statements, for a test polls with them."""
        target = f"host={self.server.folder} user=postgres dbname={self.name}"
        return psycopg.connect(target, autocommit=True)

    def sql(self, statement):
        cursor = self.connection.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def holders(self):
        """Which node holds each duty that is held."""
        ids = {self.id_of(at): at for at in range(len(self.nodes))}
        found = self.sql("SELECT name, owner FROM duties JOIN duty_daemons USING (run)")
        # What is above these bits is the number of a worker (docs/spec/workers.md, "Who is who").
        return {
            duty: ids[number] for duty, owner in found if (number := str(int(owner) % 2**52)) in ids
        }

    def holder(self, duty):
        """Which node holds a duty; None when no node does."""
        return self.holders().get(duty)


def rows(node):
    """The cluster as a node knows it."""
    with node.client() as client:
        return client.rows("/mon/cluster")
