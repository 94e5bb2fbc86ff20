"""Tables and columns of the embedded core."""

ALL = {
    "columns": 4, "commands": 3, "comments": 221, "contactgroups": 4, "contacts": 26,
    "downtimes": 221, "hostgroups": 26, "hosts": 118, "hostsbygroup": 144, "log": 254,
    "servicegroups": 19, "services": 210, "servicesbygroup": 229, "servicesbyhostgroup": 236,
    "status": 41, "timeperiods": 11,
}  # fmt: skip


def test_every_column_of_every_table_can_be_read_and_is_of_its_type(bench):
    bench.result("alpha", 1, "bad|a=1", service="load")
    bench.command("ADD_SVC_COMMENT;alpha;load;1;ann;hello")
    bench.command(f"SCHEDULE_HOST_DOWNTIME;alpha;1;{2**31};1;0;0;ann;why")
    kinds = {"string": str, "int": (int, float), "float": float, "list": list, "dict": dict}
    for table, count in ALL.items():
        listed = bench.ask("GET columns", "Columns: name type", f"Filter: table = {table}")
        names = [name for name, _ in listed]
        assert (names, len(names)) == (sorted(names), count)
        header, *rows = bench.ask(f"GET {table}")
        assert (header, len(rows) > 0) == (names, True), table
        for row in rows:
            for (name, kind), value in zip(listed, row, strict=True):
                assert isinstance(value, kinds[kind]), (table, name, value)


def test_column_types_are_naemons(bench):
    types = set(bench.column("GET columns", "Columns: type"))
    assert types == {"string", "int", "float", "list", "dict"}
    assert all(bench.column("GET columns", "Columns: description"))


def test_statehist_wants_a_span(bench):
    text = "Start of timeframe required. e.g. Filter: time > 1234567890\n"
    assert bench.status("GET statehist") == (452, text)
    assert bench.column("GET columns", "Columns: name", "Filter: table = statehist") == []


def test_unknown_columns_are_empty_texts(bench):
    rows = bench.ask("GET hosts", "Columns: nope name nope", "Filter: name = alpha")
    assert rows == [["", "alpha", ""]]


def test_complex_values(bench):
    bench.result("alpha", 2, "bad", service="load")
    bench.command("ADD_SVC_COMMENT;alpha;load;1;ann;hello; you")
    bench.command("SCHEDULE_SVC_DOWNTIME;alpha;load;1795000100;1795000200;0;0;60;ann;why")
    row = bench.ask(
        "GET services",
        "Columns: comments comments_with_info downtimes downtimes_with_info parents "
        "depends_notify depends_notify_with_info depends_exec custom_variables "
        "custom_variable_names custom_variable_values host_custom_variables",
        "Filter: description = load",
    )[0]
    now = bench.core.now()
    assert row[0] == [1, 2]
    assert row[1][0] == [1, "ann", "hello; you", now, 1, 0, 0]
    assert row[1][1][1] == "(Naemon Process)"
    assert row[2:4] == [[1], [[1, "ann", "why", now, 1795000100, 1795000200, 0, 60, 0]]]
    assert row[4:6] == [[["alpha", "disk /var"]], [["alpha", "disk /var"]]]
    assert row[6] == [["alpha", "disk /var", "cw", "", 0]]
    assert row[7:] == [[], {"LEVEL": "gold"}, ["LEVEL"], ["gold"], {"COLOUR": "red", "SIZE": "10"}]


def test_host_lists(bench):
    bench.result("alpha", 2, "bad", service="load")
    row = bench.ask(
        "GET hosts",
        "Columns: services services_with_state services_with_info childs parents groups contacts "
        "contact_groups notes_expanded",
        "Filter: name = alpha",
    )[0]
    assert row == [
        ["disk /var", "load"],
        [["disk /var", 0, 0], ["load", 2, 1]],
        [["disk /var", 0, 0, ""], ["load", 2, 1, "bad"]],
        ["beta"], [], ["both", "red"], ["ann"], ["ops"], "see 10.0.0.1",
    ]  # fmt: skip


def test_groups_count_what_is_in_them(bench):
    bench.result("alpha", 1)
    bench.result("alpha", 2, service="load")
    bench.result("alpha", 1, service="disk /var")
    columns = (
        "num_hosts num_hosts_down num_hosts_pending num_services num_services_crit "
        "num_services_warn num_services_pending worst_service_state worst_service_hard_state "
        "worst_host_state"
    )
    filters = ("Filter: name = both",)
    assert bench.ask("GET hostgroups", f"Columns: {columns}", *filters) == [
        [2, 1, 1, 3, 1, 1, 1, 2, 0, 1]
    ]
    rows = bench.ask("GET hostgroups", "Columns: name members members_with_state")
    assert rows == [
        ["red", ["alpha"], [["alpha", 1, 1]]],
        ["both", ["alpha", "beta"], [["alpha", 1, 1], ["beta", 0, 0]]],
        ["empty", [], []],
    ]
    rows = bench.ask("GET servicegroups", "Columns: members members_with_state num_services")
    assert rows == [
        [
            [["alpha", "disk /var"], ["beta", "C:\\ a; b"]],
            [["alpha", "disk /var", 1, 1], ["beta", "C:\\ a; b", 0, 0]],
            2,
        ]
    ]


def test_tables_by_group(bench):
    assert bench.ask("GET hostsbygroup", "Columns: hostgroup_name name") == [
        ["red", "alpha"], ["both", "alpha"], ["both", "beta"],
    ]  # fmt: skip
    rows = bench.ask("GET servicesbyhostgroup", "Columns: hostgroup_name host_name description")
    assert rows[:2] == [["red", "alpha", "disk /var"], ["red", "alpha", "load"]]
    assert len(rows) == 5
    rows = bench.ask("GET servicesbygroup", "Columns: servicegroup_name host_alias description")
    assert rows == [["disks", "Alpha ü", "disk /var"], ["disks", "beta", "C:\\ a; b"]]


def test_time_periods(bench):
    columns = "Columns: name alias in days exceptions_month_date exclusions"
    always, never = bench.ask("GET timeperiods", columns)
    assert always[:4] == ["always", "All day", 1, [[0, 86400]] * 7]
    (rule,) = always[4]
    assert (rule["smon"], rule["smday"], rule["skip_interval"]) == (0, 1, 0)
    assert rule["times"] == [[0, 3600], [7200, 10800]]
    assert never == ["never", "Never", 0, [[]] * 7, [], []]


def test_status_says_that_it_is_a_simulation(bench):
    row = bench.ask(
        "GET status", "Columns: program_version livestatus_version program_start num_hosts "
        "num_services enable_notifications interval_length requests connections_rate"
    )[0]  # fmt: skip
    assert row == ["1.5.2-demo", "1.5.1-naemon", 1795000000, 3, 3, 1, 60, 1, 0.0]


def test_joined_columns_may_stand_in_any_order(bench):
    names = "host_name description host_address state host_state nope host_groups"
    rows = bench.ask("GET services", f"Columns: {names}", "Filter: host_name = alpha")
    assert rows == [
        ["alpha", "disk /var", "10.0.0.1", 0, 0, "", ["both", "red"]],
        ["alpha", "load", "10.0.0.1", 0, 0, "", ["both", "red"]],
    ]


def test_contacts_see_what_they_are_contact_of(bench):
    def seen(user, table, columns):
        return bench.ask(f"GET {table}", f"Columns: {columns}", f"AuthUser: {user}")

    assert seen("ann", "hosts", "name") == [["alpha"], ["beta"]]
    assert seen("ben", "hosts", "name") == [["beta"]]
    # Loose: the contact of a service, or of its host.
    assert seen("ben", "services", "description") == [["load"], ["C:\\ a; b"]]
    assert len(seen("ann", "services", "description")) == 3
    # Strict: the contact of every member; empty groups are hidden.
    assert seen("ann", "hostgroups", "name") == [["red"], ["both"]]
    assert seen("ben", "hostgroups", "name") == []
    assert seen("ann", "servicegroups", "name") == [["disks"]]
    assert seen("ben", "hostsbygroup", "name") == []
    assert seen("nobody", "hosts", "name") == []
    assert len(seen("nobody", "contacts", "name")) == 2
    assert len(seen("nobody", "timeperiods", "name")) == 2
    assert seen("nobody", "status", "num_hosts") == [[3]]
    bench.command("ADD_HOST_COMMENT;alpha;1;ann;hello")
    assert seen("ben", "comments", "id") == []
    assert seen("ann", "comments", "id") == [[1]]
    assert bench.ask("GET services", "Stats: state = 0", "AuthUser: ben") == [[2]]


def test_the_log_hides_objects_that_a_contact_may_not_see(bench):
    bench.result("alpha", 1)
    bench.result("beta", 1)
    bench.command("LOG;HOST ALERT: gone;DOWN;HARD;1;vanished")
    bench.command("LOG;just a text")
    kinds = (
        "GET log",
        "Columns: type host_name",
        "Filter: class = 1",
        "Filter: class = 0",
        "Or: 2",
    )
    assert bench.ask(*kinds)[:2] == [["just a text", ""], ["HOST ALERT", "gone"]]
    seen = bench.ask(*kinds, "AuthUser: ben")
    assert seen == [["just a text", ""], ["HOST ALERT", "beta"]]
