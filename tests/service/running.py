"""The composed daemon in this process, on a configuration file of its own."""

import json
from pathlib import Path

import treq
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.web.client import Agent

from monrest.config import load
from monrest.daemon.service import Daemon
from monrest.daemon.systemd import Notifier

SITE = '[[sites]]\nid = "{id}"\nname = "{name}"\naddress = "unix:{folder}/none"\n'


class Told:
    """Keeps the messages to the service manager."""

    def __init__(self):
        self.messages = []

    def notifier(self):
        told = self.messages

        class Keeping(Notifier):
            def _send(self, message):
                told.append(message.split("\n")[0])

        return Keeping("somewhere", lambda: 1)


class Running:
    """A daemon on a configuration file of its own."""

    def __init__(self, folder):
        self.folder, self.told, self.stops = Path(folder), Told(), 0
        self.path = self.folder / "monrest.toml"
        self.listen = "tcp:0:interface=127.0.0.1"
        self.daemon = None

    def write(self, *sites, more=""):
        text = f'[server]\nlisten = ["{self.listen}"]\nvar_dir = "{self.folder}/var"\n{more}\n'
        text += '[auth.roles]\nadmin = ["admin"]\n'
        for name in sites:
            text += SITE.format(id=name, name=name.upper(), folder=self.folder)
        self.path.write_text(text)

    def start(self, *sites, more=""):
        self.write(*sites, more=more)
        self.daemon = Daemon(
            config=load(self.path),
            reactor=reactor,
            path=str(self.path),
            notifier=self.told.notifier(),
            on_stopped=self.stopped,
        )
        self.daemon.startService()
        return self

    def stopped(self):
        self.stops += 1

    @property
    def key(self):
        return (self.folder / "var" / "secret.key").read_text().strip()

    async def get(self, path, root="/mon/r"):
        number = self.daemon.listeners.ports[0].getHost().port
        headers = {"X-Mon-Auth-Key": self.key, "X-Mon-Auth-User": "admin", "Connection": "close"}
        client = treq.client.HTTPClient(Agent(reactor))
        response = await client.get(f"http://127.0.0.1:{number}{root}{path}", headers=headers)
        return response.code, json.loads(await response.content())

    async def reload(self):
        self.daemon.reload()
        while self.daemon._reloading is not None:
            await self.daemon._reloading
            await turn()

    def site_ids(self):
        return [site.id for site in self.daemon.parts.registry.sites]


def turn():
    done = Deferred()
    reactor.callLater(0, done.callback, None)
    return done
