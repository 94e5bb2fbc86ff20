"""The column lists kept for Icinga 2 against the columns that a running one has."""

import pytest
from harness.cores import Icinga2Core

from monrest.sites.static import icinga2

WITH_ROWS = [
    *("hosts", "services", "hostgroups", "servicegroups", "contacts", "contactgroups"),
    *("commands", "timeperiods", "comments", "downtimes", "status", "log"),
    *("hostsbygroup", "servicesbygroup", "servicesbyhostgroup"),
]

pytestmark = pytest.mark.icinga2


@pytest.fixture(scope="module")
def real(shared):
    return shared.core(Icinga2Core)


ICINGA2 = icinga2()


@pytest.mark.parametrize("table", [table for table in WITH_ROWS if table in ICINGA2])
def test_the_kept_list_is_the_real_one(real, table):
    columns = set(real.ask(f"GET {table}")[0])
    assert set(ICINGA2[table]) - columns == set(), "asking for these would fail"
    if table == "log":  # the plain forms repeat current_host_ and current_service_
        columns = {name for name in columns if not name.startswith(("host_", "service_"))}
    extra = columns - set(ICINGA2[table])
    assert extra == set(), "these exist and would be shown empty"


@pytest.mark.parametrize("table", [table for table in WITH_ROWS if table in ICINGA2])
def test_every_kept_column_can_be_asked_for(real, table):
    columns = sorted(ICINGA2[table])
    rows = real.ask(f"GET {table}\nColumns: {' '.join(columns)}\nLimit: 1")
    assert len(rows[0]) == len(columns)
