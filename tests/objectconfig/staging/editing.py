"""A daemon that edits and saves until it is killed: ``editing.py URL VAR_DIR FOLDER NAME``.

Each edit sets the same number in two files, and adds a host. What was done is acknowledged on
standard output: ``edited N`` and, now and then, ``saved N``.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

from twisted.internet import task
from twisted.internet.defer import Deferred

sys.path.insert(0, str(Path.cwd()))

from tests.objectconfig.staging.site import Daemon, Site

FILES = ("one.cfg", "two.cfg")


def number(host):
    return int(host.attributes.get("_number", -1))


def step(prefix, value):
    def change(editor):
        for file in FILES:
            (found,) = editor.model.find("host", f"{prefix}-{file}") or [None]
            values = {"host_name": f"{prefix}-{file}", "_number": str(value)}
            if found is None:
                editor.create("host", f"conf.d/{prefix}-{file}", values)
            else:
                editor.patch([found], values)
        if value % 3 == 0:
            editor.create("host", f"conf.d/{prefix}-{FILES[0]}", {"host_name": f"{prefix}-{value}"})

    return change


async def main(url, var_dir, folder, prefix):
    daemon = Daemon(url, var_dir, Site(folder))
    view = await daemon.view(prefix)
    found = view.model.find("host", f"{prefix}-{FILES[0]}")
    for value in count(number(found[0]) + 1 if found else 0):
        await daemon.edit(step(prefix, value), prefix)
        os.write(1, f"edited {value}\n".encode())
        if value % 2:
            await daemon.save(prefix)
            os.write(1, f"saved {value}\n".encode())


if __name__ == "__main__":
    task.react(lambda _, *arguments: Deferred.fromCoroutine(main(*arguments)), sys.argv[1:])
