"""Every column has a type in wrapped JSON: declared, computed and expanded ones."""

from monrest.daemon.families import ENDPOINTS
from tests.table import each

PATHS = sorted(
    {
        one.path
        for one in ENDPOINTS
        if "GET" in one.methods and "<" not in one.path and not one.at_once and not one.public
    }
    - {"/logs", "/mon/cluster/heartbeat"}
)


def test_every_column_is_declared_with_a_type():
    untyped = [
        (one.path, column.name)
        for one in ENDPOINTS
        for column in (
            *one.columns,
            *(made.column for made in (one.schema.columns.values() if one.schema else ())),
        )
        if not column.type
    ]
    assert not untyped


def test_every_column_of_every_answer_has_a_type(client):
    untyped = {}
    for path in PATHS:
        answer = client.get(f"/wrapped_json{path}")
        if answer.status != 200 or "meta" not in answer.text[-200_000:]:
            continue
        names = [one["name"] for one in answer.json["meta"]["columns"] if "type" not in one]
        if names and answer.json["data"]:
            data = answer.json["data"]
            first = data[0] if isinstance(data, list) else data
            # Nobody knows what a key is that nothing declares and that holds nothing.
            names = [name for name in names if first.get(name) is not None]
        if names:
            untyped[path] = names
    assert not untyped


COMPUTED = [
    ("rta", "number", "ms"),
    ("rta_unit", "string", ""),
    ("pl", "number", "%"),
    ("_WORKER", "string", ""),
    ("perf_data_expanded", "array_of_strings", ""),
    ("calc(rta,+,1)", "number", "ms"),
    ("calc(rta,'-',pl)", "number", "ms"),
    ("calc(rta,*,1000)", "number", ""),
    ("rta+1", "number", "ms"),
    ("(rta+1)-2", "number", "ms"),
    ("rta+pl", "number", ""),
    ("latency+execution_time", "number", "s"),
    ("latency*2", "number", ""),
    ("last_check+1", "time", ""),
    ("last_check-3600", "time", ""),
    ("calc(last_check,+,1)", "time", ""),
    ("next_check-last_check", "number", "s"),
    ("age(last_check)", "number", "s"),
    ("age(last_check)+1", "number", "s"),
    ("upper(name)", "string", ""),
    ("unit(rta,kB)", "number", "kB"),
    ("to_rows(groups)", "string", ""),
    ("state", "number", ""),
]


@each(("column", "kind", "unit"), COMPUTED)
def test_types_and_units_of_what_is_computed(client, column, kind, unit):
    answer = client.rows("/wrapped_json/hosts/web01", {"columns": f"{column} as x"})
    expected = {"name": "x", "type": kind}
    if unit:
        expected["config"] = {"unit": unit}
    assert answer["meta"]["columns"] == [expected]


def test_groups_have_types_as_well(client):
    answer = client.rows(
        "/wrapped_json/hosts", {"columns": "state,count(*) as n,max(last_check) as l"}
    )
    assert answer["meta"]["columns"] == [
        {"name": "state", "type": "number"},
        {"name": "n", "type": "number"},
        {"name": "l", "type": "time"},
    ]
