"""A limit belongs to who has it: nobody's roles depend on who asked before."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.base.values import ADMIN, READ_ONLY, ROLES
from tests.accounts.authenticate.given import basic
from tests.examples import examples
from tests.fakes.door import HOSTS, KEY, SECRET, SERVICES, USER, Door, Session
from tests.fakes.keystore import result

LIMITS = st.none() | st.frozensets(st.sampled_from((HOSTS, SERVICES, ADMIN, READ_ONLY)))


def owner(door, limit):
    """The identity of what is done in the name of ann, such as her reports."""
    return result(door.authenticator.of_user("ann", limit))


@pytest.mark.parametrize("limits", [(None, frozenset({HOSTS})), (frozenset({HOSTS}), None)])
def test_what_is_done_in_somebody_s_name_has_its_own_limit(door, limits):
    door.configure(roles={"admin": ("ann",)})
    full = {limit: owner(door, limit).roles for limit in limits}
    assert full == {None: {ADMIN}, frozenset({HOSTS}): {HOSTS}}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(st.lists(LIMITS, min_size=2, max_size=6), st.frozensets(st.sampled_from(ROLES)))
def test_no_answer_depends_on_the_ones_before(tmp_path_factory, limits, held):
    """Keys, forced keys, sessions, passwords and owners, with any limits in any order."""
    door = Door(tmp_path_factory.mktemp("door"))
    door.configure(roles=dict.fromkeys(held, ("ann",)))
    door.passwords.known = {"ann": "right"}
    ways = [lambda: door.ask(basic("ann", "right")), lambda: door.ask({KEY: SECRET, USER: "ann"})]
    for at, limit in enumerate(limits):
        roles = None if limit is None else tuple(sorted(limit))
        key = {KEY: door.make(user="ann", roles=roles)}
        forced = {KEY: door.make(superuser=True, force_user="ann", roles=roles)}
        # Two sessions never have one id; what is remembered must not rely on that.
        door.sessions.known[f"v{at}"] = Session(hashed_id="same", roles=roles)
        cookie = {"cookie": f"mon_auth=v{at}"}
        ways += [
            lambda key=key: door.ask(key),
            lambda forced=forced: door.ask(forced),
            lambda cookie=cookie: door.ask(cookie),
            lambda limit=limit: owner(door, limit),
        ]
    alone = []
    for way in ways:
        door.configure(roles=dict.fromkeys(held, ("ann",)))
        alone.append(way())
    assert [way() for way in ways] == alone
    assert [way() for way in reversed(ways)] == alone[::-1]
    door.store.stopService()
