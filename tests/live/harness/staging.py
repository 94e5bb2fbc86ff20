"""What tests of staged changes say over and over."""

NEW = {":TYPE": "host", ":FILE": "new/n1.cfg", "host_name": "n1", "use": "quiet-host"}
"""An object that is not there yet."""


def post(client, path):
    response = client.request("POST", path)
    assert response.status == 200, response
    return response.json


def saved(client):
    answer = post(client, "/config/save")
    assert answer == {"message": "successfully saved changes for 1 site.", "count": 1}
