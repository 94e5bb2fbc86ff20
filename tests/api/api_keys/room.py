"""/mon/api_keys with real keys, and who asks for it."""

import orjson

from monrest.accounts.roles import EVERYTHING
from monrest.base.values import ADMIN, Caller, Contact, Identity, RestRequest
from monrest.config import AuthConfig, Config
from monrest.render.formats import RenderOptions, render
from tests.fakes.context import make_context
from tests.fakes.door import HOSTS, KEY, USER, Door
from tests.fakes.keystore import result

COMMANDS = "authorized_for_all_host_commands"
NOW = 1_700_000_000
PATH = "/mon/api_keys"

ANN = Identity(user="ann", roles=frozenset({HOSTS}))
BOB = Identity(user="bob")
ROOT = Identity(user="root", roles=frozenset({ADMIN}))
CLI = Identity(user="(cli)", roles=EVERYTHING, source="cli", superuser=True)


class May:
    """Contacts, of whom some may not send commands."""

    def __init__(self):
        self.silent = set()

    async def of(self, user):
        return Contact(can_submit_commands=user not in self.silent)


class Room:
    """The resource with real keys; ``send`` is one request."""

    def __init__(self, folder):
        self.door = Door(folder)
        self.keys = self.door.keys
        self.contacts = May()
        self.configure()

    def configure(self, **auth):
        auth = {"roles": {"admin": ("root",), "all_hosts": ("ann",)}, **auth}
        self.door.configure(**auth)
        self.config = Config(auth=AuthConfig(**auth))

    def send(self, identity, method="GET", id=None, document=None, format="json", **given):
        path = PATH if id is None else f"{PATH}/{id}"
        values = {} if document is None else document
        pairs = [(name, value) for name, value in {**given, **values}.items()]
        request = RestRequest(
            method=method,
            path=path,
            segments=tuple(path.strip("/").split("/")),
            parameters=tuple(
                (name, str(one))
                for name, value in pairs
                for one in (value if isinstance(value, (list, tuple)) else [value])
            ),
            document=document,
            format=format,
            identity=identity,
            caller=Caller(method=method, address="192.0.2.7", client="192.0.2.7"),
        )
        context = make_context(
            self.door.clock, config=self.config, keys=self.keys, contacts=self.contacts
        )
        return result(context.dispatch(context, request))

    def post(self, identity, **given):
        return self.send(identity, "POST", **given).value

    def key(self, made):
        return result(self.keys.several(hashed=made["hashed_key"]))[0]

    def use(self, made, as_user=None):
        return self.door.ask({KEY: made["private_key"], **({USER: as_user} if as_user else {})})


def shown(answer, format="json"):
    return b"".join(render(answer, RenderOptions(format=format)).pieces)


def rows(answer):
    return orjson.loads(shown(answer))
