"""Business processes for tests: a core with what stands for two of them, and how they are written."""

import shutil

import pytest

from .cores import OBJECTS, EmbeddedCore
from .daemon import site

EXPORTED = """
define host {
    use        quiet-host
    host_name  Web Shop
    address    127.0.0.9
    contact_groups  webteam
    _MON_BP_ID 1
}
define service {
    use        quiet-service
    host_name  Web Shop
    service_description Shop
    contact_groups  webteam
    _MON_BP_ID 1
}
define service {
    use        quiet-service
    host_name  Web Shop
    service_description Front ends
    _MON_BP_ID 1
}
define host {
    use        quiet-host
    host_name  Company
    address    127.0.0.10
    _MON_BP_ID 2
}
define service {
    use        quiet-service
    host_name  Company
    service_description Company
    _MON_BP_ID 2
}
"""
"""What stands for two processes in the core."""

SHOP = {
    "name": "Web Shop",
    "nodes": [
        {"label": "Shop", "function": "worst()", "depends": ["fronts", "db"]},
        {
            "id": "fronts",
            "label": "Front ends",
            "function": "at_least(2, 1)",
            "depends": ["w1", "w2"],
            "create_obj": 1,
        },
        {"id": "w1", "label": "web01", "function": "status('web01', 'http')"},
        {"id": "w2", "label": "web02", "function": "status('web02', 'http')"},
        {"id": "db", "label": "Database", "function": "status('db01', 'ping')"},
    ],
}


LINKED = {
    "name": "Company",
    "nodes": [
        {"label": "Company", "function": "worst", "depends": ["shop", "host"]},
        {"id": "shop", "label": "the shop", "function": "status('Web Shop', 'Shop')"},
        {"id": "host", "label": "database", "function": "status('db01')"},
    ],
}


@pytest.fixture(scope="module")
def core(shared):
    folder = shared.folder()
    shutil.copy(OBJECTS / "site.cfg", folder / "site.cfg")
    (folder / "bp.cfg").write_text(EXPORTED)
    return shared.core(EmbeddedCore, folder)


@pytest.fixture(scope="module")
def daemon(core, shared):
    return shared.daemon(
        [site("s1", core)],
        sections={
            "bp": {"refresh_interval": 0},
            "auth.roles": {"business_processes": ["bea"], "all_host_commands": ["hugo"]},
        },
    ).start()


@pytest.fixture
def admin(daemon):
    """The administrator, of a daemon without processes."""
    with daemon.client() as client:
        for one in client.rows("/mon/bp"):
            assert client.request("DELETE", f"/mon/bp/{one['id']}").status == 200
        yield client


def patch(client, number, document):
    return client.patch(f"/mon/bp/{number}", document)


def create(client, document):
    response = client.post_json("/mon/bp", document)
    assert response.status == 200, response
    assert response.json["message"] == "business process successfully created"
    return response.json["data"]


def alive(client, document):
    """Make a process and make it live."""
    made = create(client, document)
    assert patch(client, made["id"], {}).json == {
        "message": "business process successfully updated"
    }
    return made["id"]


def refreshed(client, number):
    response = client.post_json(f"/mon/bp/{number}/refresh", {})
    assert response.status == 200, response
    assert response.json["message"] == "business process refreshed successfully"
    return response.json["data"]


def by_id(process):
    return {node["id"]: node for node in process["nodes"]}
