"""Cores for the tests of commands: tables in memory, which say what they were asked and told."""

from types import SimpleNamespace

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base import audit as auditing
from monrest.base.errors import BadRequest, SitesFailed, SitesTimedOut
from monrest.base.values import Caller, Capabilities, Identity, RestRequest, SiteProblem
from monrest.commands import lookups, readback, submit
from monrest.config import Config
from monrest.config.sections import AuthConfig, CommandsConfig, ServerConfig
from monrest.livestatus.catalogue import ALL
from monrest.livestatus.external import line
from monrest.query.column_names import EMPTY
from monrest.query.model import Group, Test
from monrest.rows.columns import SCHEMAS
from monrest.sites.commands import SentToSite
from monrest.sites.fanout import Gathered, SiteAnswer
from tests.fakes.context import make_context
from tests.fakes.keystore import value_of
from tests.fakes.threads import Reactor, own_memory

NOW = 1_700_000_000
AT = f"[{NOW}]"
ADMIN = Identity(user="admin", roles=frozenset({"authorized_for_admin"}))
ANN = Identity(user="ann")
CALLER = Caller(method="POST", address="192.0.2.1", client="192.0.2.1")

TABLES = {
    schema.table: {
        name: getattr(spec, "core_type", "string") for name, spec in schema.columns.items()
    }
    for schema in SCHEMAS.values()
}


def passes(limit, row):
    match limit:
        case None:
            return True
        case Group("and", items):
            return all(passes(one, row) for one in items)
        case Group("or", items):
            return any(passes(one, row) for one in items)
        case Test(column, "=", value):
            return str(row.get(column, "")) == value
        case Test(column, ">=", value):
            found = row.get(column, [])
            return value in found if isinstance(found, list) else found >= float(value)
    raise AssertionError(limit)


class FakeSite:
    """A site with tables of dictionaries; ``obey`` is called with every command it accepts."""

    local = True
    section = ""

    def __init__(self, id, kind="naemon", *, hidden=False, groups=(), **tables):
        self.id, self.name, self.hidden = id, id.upper(), hidden
        self.config = SimpleNamespace(groups=tuple(groups), configtool=None)
        self.capabilities = Capabilities(kind=kind, tables=TABLES, key=kind)
        self.tables = tables
        self.memory = own_memory(Reactor())
        self.problem = None
        self.refusals = {}
        self.doubtful = False
        self.doubt = None
        self.told = []
        self.asked = []
        self.obey = lambda order: None

    def learn_order(self, table, order):
        """It is asked to sort each time."""

    def fail(self, reason="connection refused", *, timed_out=False):
        self.problem = SiteProblem(self.id, self.name, reason, timed_out)


class World:
    """Everything behind the handlers of commands."""

    def __init__(self, monkeypatch):
        self.clock = Clock()
        self.clock.advance(NOW)
        self.sites = []
        self.audited = []
        self.sending = []
        self.hold = None
        self.commands = CommandsConfig()
        self.strict = False
        monkeypatch.setattr(lookups, "fan_out", self.fan_out)
        monkeypatch.setattr(readback, "fan_out", self.fan_out)
        monkeypatch.setattr(submit, "send", self.send)
        monkeypatch.setattr(submit, "audit", self.audit)

    def site(self, id, *arguments, **tables):
        self.sites.append(FakeSite(id, *arguments, **tables))
        return self.sites[-1]

    def audit(self, who, caller, action, *, target="", result="ok", **details):
        assert auditing.audit  # the real one takes the same
        self.audited.append({"who": who.user, "client": caller.client, "action": action,
                             "target": target, "result": result, **details})  # fmt: skip

    async def fan_out(self, sites, plan, layout, clock, share=None):
        assert sites
        answers, problems = [], []
        for site in sites:
            if site.problem is not None:
                problems.append(site.problem)
                continue
            pushed = plan(site, site.capabilities)
            if pushed is None:
                continue
            site.asked.append(pushed)
            types = dict(layout)
            rows = [
                [row.get(name, EMPTY[types[name]]) for name, _ in layout]
                for row in site.tables.get(pushed.table, ())
                if passes(pushed.filter, row)
            ]
            answers.append(SiteAnswer(site, rows, pushed, site.capabilities, 0.0))
        if len(problems) == len(sites):
            raise (SitesTimedOut if all(p.timed_out for p in problems) else SitesFailed)(problems)
        return Gathered(tuple(answers), tuple(problems), 0.0)

    async def send(self, orders, clock, told=None):
        if self.hold is not None:
            await self.hold
        done = []
        for site, commands in orders:
            lines = tuple(
                line(one, int(clock.seconds()), decodes_backslashes=True) for one in commands
            )
            self.sending.append((site.id, lines))
            if site.problem is not None:
                done.append(SentToSite(site=site, unsent=lines, problem=site.problem))
                continue
            if site.doubtful:
                doubtful = dict.fromkeys(range(len(lines)), site.doubt.reason)
                done.append(
                    SentToSite(site=site, lines=lines, problem=site.doubt, doubtful=doubtful)
                )
                continue
            refused = {}
            for at, order in enumerate(commands):
                if order.name in site.refusals:
                    refused[at] = site.refusals[order.name]
                else:
                    site.told.append(";".join([order.name, *order.fields]))
                    site.obey(order)
            done.append(SentToSite(site=site, lines=lines, refused=refused))
        return tuple(done)

    @property
    def context(self):
        config = Config(
            commands=self.commands,
            auth=AuthConfig(strict_host_authorization=self.strict),
            server=ServerConfig(request_timeout=40.0),
        )
        return make_context(self.clock, *self.sites, config=config, contacts=Contacts())

    def start(
        self,
        path,
        *parameters,
        identity=ADMIN,
        document=None,
        structured=None,
        sites=(),
        method="POST",
    ):
        request = RestRequest(
            method=method, path=path, segments=tuple(path.strip("/").split("/")),
            parameters=parameters, identity=identity, document=document, structured=structured,
            sites=sites, caller=CALLER,
        )  # fmt: skip
        return Deferred.fromCoroutine(self.context.dispatch(self.context, request))

    def post(self, path, *parameters, seconds=60.0, **more):
        """The answer, with time passing in small steps for as long as it needs."""
        found = []
        self.start(path, *parameters, **more).addBoth(found.append)
        end = self.clock.seconds() + seconds
        while not found and self.clock.seconds() < end:
            self.clock.advance(0.01)
        return value_of(found)

    def refused(self, kind, path, *parameters, **more):
        """The error of a request that must fail."""
        try:
            answer = self.post(path, *parameters, **more)
        except kind as error:
            return error
        raise AssertionError(answer)

    def bulk(self, *entries, parameters=(), **more):
        return self.post("/cmd", *parameters, document=list(entries), structured="", **more)


class Contacts:
    """All users may submit commands, except one of this name."""

    async def of(self, user):
        return SimpleNamespace(groups=frozenset(), can_submit_commands=user != "gagged")


def host(name, *contacts, **more):
    return {"name": name, "contacts": list(contacts), "state": 1, **more}


def service(host_name, description, *contacts, **more):
    return {"host_name": host_name, "description": description, "contacts": list(contacts),
            "host_contacts": [], "state": 1, **more}  # fmt: skip


__all__ = ["ADMIN", "ALL", "ANN", "NOW", "BadRequest", "FakeSite", "World", "host", "service"]
