"""A world of sites, and one that has an object of every kind."""

import pytest

from tests.api.cores import World, host, service


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.fixture
def one(world):
    """A site with an object of every kind."""
    return world.site(
        "s1",
        hosts=[host("h1", "ann", groups=["g1"]), host("h2", "bob", groups=["g1", "g2"])],
        services=[
            service("h1", "s1", "ann", groups=["sg1"]),
            service("h1", "s2", groups=["sg1"], host_contacts=["ann"]),
            service("h2", "s1", "bob", groups=["sg2"]),
        ],
        hostgroups=[{"name": "g1"}, {"name": "g2"}, {"name": "empty"}],
        servicegroups=[{"name": "sg1"}, {"name": "sg2"}],
        contacts=[{"name": "ann"}, {"name": "bob"}],
        contactgroups=[{"name": "cg"}],
        timeperiods=[{"name": "24x7"}],
        comments=[],
        downtimes=[],
    )
