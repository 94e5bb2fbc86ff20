"""Requests that run as jobs."""

from .waiting import until


def background(client, path, method="GET", **more):
    """Start a job; its id."""
    joint = "&" if "?" in path else "?"
    response = client.request(method, f"{path}{joint}background=1", **more)
    assert response.status == 200, response
    started = response.json
    assert set(started) == {"job_id", "message", "result_url", "success"}
    assert started["success"] is True
    assert started["message"]
    assert started["result_url"] == f"/mon/r/mon/jobs/{started['job_id']}/output"
    return started["job_id"]


def ended(client, number):
    """Wait for the end of a job; its record."""
    return until(
        lambda: (row := client.rows(f"/mon/jobs/{number}"))["is_running"] == 0 and row,
        f"job {number} ends",
    )
