"""What ``database.url`` may be; told without a connection and without repeating it."""

import pytest

from monrest.config import ConfigError, loads
from monrest.config.addresses import database_problem
from monrest.store import engines

GOOD = [
    "sqlite:////var/lib/monrest/monrest.sqlite",
    "postgresql+psycopg://monrest@db/monrest",
    "postgresql+psycopg://monrest:p%40ss%2Fword@db.example.org:5433/monrest?sslmode=require",
    "postgresql+psycopg://monrest@[::1]:5432/monrest",
    "postgresql+psycopg:///monrest?host=/run/postgresql",
    "postgresql+psycopg://monrest@/?dbname=monrest",
    "postgresql+psycopg://monrest@/monrest?host=a,b&target_session_attrs=read-write",
]
BAD = {
    "mysql://u:pa55@h/d": "expected sqlite:////path/to/file or postgresql+psycopg://user@host/",
    "postgresql://u:pa55@h/d": "expected postgresql+psycopg://… instead of postgresql://…",
    "postgres://u:pa55@h/d": "expected postgresql+psycopg://… instead of postgres://…",
    "postgresql+psycopg2://u:pa55@h/d": "instead of postgresql+psycopg2://…",
    "sqlite://": "expected an absolute path, written with four slashes",
    "sqlite:///:memory:": "expected an absolute path, written with four slashes",
    "sqlite:///monrest.sqlite": "expected an absolute path, written with four slashes",
    "sqlite://host/monrest.sqlite": "expected an absolute path, written with four slashes",
    "sqlite:////var/lib/": "expected the path of a file, not of a directory",
    "sqlite:////var/lib/a?mode=ro": "expected a path without ? and #",
    "postgresql+psycopg://u:pa55@h": "expected the name of a database at its end",
    "postgresql+psycopg://u:pa55@h/": "expected the name of a database at its end",
    "postgresql+psycopg://u:pa55@h:0/d": "expected a port from 1 to 65535",
    "postgresql+psycopg://u:pa55@h:99999/d": "expected a port from 1 to 65535",
    "postgresql+psycopg://u:pa55/x@h/d": "passwords with @ : / ? # as %40 and so on",
    "postgresql+psycopg://u:pa55#x@h/d": "expected no # (in a password: %23)",
    "postgresql+psycopg://u:pa55@h/d?sslmode": "expected options as ?name=value",
    "": "expected sqlite:////path/to/file",
    "/var/lib/monrest.sqlite": "expected sqlite:////path/to/file",
}


@pytest.mark.parametrize("url", GOOD)
def test_good_urls(url):
    assert database_problem(url) == ""
    assert engines.parse(url).drivername == url.partition(":")[0]


@pytest.mark.parametrize(("url", "expected"), BAD.items())
def test_bad_urls(url, expected):
    problem = database_problem(url)
    assert expected in problem
    assert "pa55" not in problem


@pytest.mark.parametrize("table", ["database", "logcache"])
def test_a_configuration_names_the_key(table):
    with pytest.raises(ConfigError) as caught:
        loads(f'[{table}]\nurl = "postgresql://u:pa55@h/d"\n')
    assert str(caught.value) == (
        f"{table}.url: expected postgresql+psycopg://… instead of postgresql://… (line 2)"
    )


def test_a_configuration_needs_no_connection():
    """Nobody listens there, and the check says nothing about it."""
    url = "postgresql+psycopg://u@127.0.0.1:1/monrest"
    assert loads(f'[database]\nurl = "{url}"\n').database.url == url
