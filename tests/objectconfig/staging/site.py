"""A small site on disk, and a staging service over it as a daemon has one."""

from __future__ import annotations

from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from monrest.base.clock import MachineClock
from monrest.config import ConfigTool
from monrest.objectconfig.model import ConfigSite
from monrest.objectconfig.save import recover_all
from monrest.objectconfig.service import Staging
from monrest.objectconfig.site_commands import Hooks
from monrest.store.database import Database

HOSTS = """# hosts of the test
define host {
  host_name                      w1
  address                        127.0.0.1
  use                            generic-host
}

define host {
  host_name                      w2
  address                        127.0.0.2
  parents                        w1
}

define host {
  host_name                      w3
  address                        127.0.0.3
}
"""
GROUPS = """define hostgroup {
  hostgroup_name                 all
  members                        w1,w2
}
"""
OUTSIDE = "# another editor was here\n"


def later(coroutine):
    return Deferred.fromCoroutine(coroutine)


class Site:
    """``folder`` holds a main file, ``conf.d`` with two files, and one named file beside it."""

    def __init__(self, folder, id="prod"):
        self.folder = Path(folder)
        self.conf = self.folder / "conf.d"
        main = self.folder / "main.cfg"
        self.site = ConfigSite(id=id, name=id.title(), tool=ConfigTool(core_conf=str(main)))
        if main.exists():
            return
        self.conf.mkdir(parents=True, exist_ok=True)
        main.write_text("cfg_dir=conf.d\ncfg_file=named.cfg\n")
        (self.conf / "hosts.cfg").write_text(HOSTS)
        (self.conf / "groups.cfg").write_text(GROUPS)
        (self.folder / "named.cfg").write_text(
            "# named\ndefine command {\n  command_name  c\n  command_line  /bin/true\n}\n"
        )

    def path(self, name):
        return str(self.conf / name)

    def read(self, name):
        return (self.conf / name).read_text()


class Daemon:
    """One daemon: a database of its own, and a state folder."""

    def __init__(self, url, var_dir, site):
        self.database = Database(reactor, url)
        self.staging = Staging(reactor, MachineClock(), self.database, Path(var_dir))
        self.site = site
        recover_all(Path(var_dir))
        self.database.startService()
        self.staging.startService()

    async def stop(self):
        await self.staging.stopService()
        await self.database.stopService()

    def view(self, user="ann"):
        return self.staging.view(self.site.site, user)

    async def names(self, user="ann", kind="host"):
        view = await self.view(user)
        return [item.attributes[f"{kind}_name"] for item in view.model.objects if item.type == kind]

    async def host(self, name, user="ann"):
        (found,) = (await self.view(user)).model.find("host", name)
        return found

    def edit(self, change, user="ann"):
        return self.staging.edit(self.site.site, user, change)

    def create(self, name, user="ann", file="conf.d/hosts.cfg", **values):
        values = {"host_name": name, "address": "192.0.2.1", **values}
        return self.edit(lambda editor: editor.create("host", file, values).id, user)

    def patch(self, name, user="ann", **values):
        def change(editor):
            (found,) = editor.model.find("host", name)
            return editor.patch([found], values)[0].id

        return self.edit(change, user)

    def delete(self, kind, name, user="ann"):
        return self.edit(lambda editor: editor.delete(editor.model.find(kind, name)), user)

    async def diff(self, user="ann", **options):
        texts = await self.staging.diff(self.site.site, user, **options)
        return {Path(path).name: text for path, text in texts.items()}

    def save(self, user="ann", **hooks):
        return self.staging.save(self.site.site, user, Hooks(**hooks))

    def revert(self, user="ann"):
        return self.staging.revert(self.site.site, user)

    def refresh(self, user="ann"):
        return self.staging.refresh(self.site.site, user)
