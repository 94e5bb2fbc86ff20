"""Daemons that have the sites of other daemons."""


def superuser_key(daemon):
    """A new API key of ``daemon`` with which another one may ask in the name of any user."""
    with daemon.client() as client:
        answer = client.post_json("/mon/api_keys", {"superuser": 1, "comment": "federation"})
        assert answer.status == 200, answer
        return answer.json["private_key"]


def far_site(key, daemon, auth_key, **more):
    """An entry of ``[[sites]]`` that stands for the sites of ``daemon``."""
    return {
        "id": key,
        "name": key.upper(),
        "address": f"http://127.0.0.1:{daemon.port}/mon",
        "auth_key": auth_key,
        **more,
    }
