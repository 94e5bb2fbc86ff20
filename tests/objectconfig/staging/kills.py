"""Kills at every instant of a save that differs from the one before: ``kills.py FOLDER WHAT``.

What a kill leaves behind is what the files are at that instant, so one save gives them all: its
folder is read at each line of our own code before which the file system was touched. Then the
next process recovers from each of them (``save``), and from each that a kill leaves while it does
(``recovery``). What is checked: either all files are the old ones or all are the new ones, and
nothing else is left behind. Prints how often it came to the old and to the new ones.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from monrest.objectconfig import save
from monrest.objectconfig.save import SaveRoom, Writable, Write, digest, recover_all, write

OURS = {save.__file__}

OLD = {"a.cfg": b"old a\n" * 500, "sub/b.cfg": b"old b", "sub/c.cfg": b"old c", "gone/d.cfg": b"d"}
NEW = {"a.cfg": b"new a\n" * 900, "sub/c.cfg": b"new c", "sub/b.cfg": b"", "x/y/e.cfg": b"new e"}


# A kill loses nothing that was written; syncing, which is for power cuts, would only take time.
os.fsync = lambda _: None


def lay_out(folder):
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in OLD.items():
        path = folder / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    # The last version of an earlier save, which this one replaces.
    room = SaveRoom.of(folder / "var", "prod")
    (room.folder / "backup-earlier").mkdir()
    (room.folder / "backup-earlier" / "0").write_bytes(b"earlier")


def save_all(folder):
    names = sorted({*OLD, *NEW})
    writes = [
        Write(
            path=str(folder / "conf" / name),
            base_hash=digest(OLD.get(name)),
            content=NEW.get(name),
        )
        for name in names
    ]
    room = SaveRoom.of(folder / "var", "prod")
    with room.locked():
        write(room, writes, Writable(folders=(str(folder / "conf"),)), note={})


touched: list[str] = []
"""Calls that touch the file system since the last instant; a hook cannot be taken away again."""


def watch(event, _arguments):
    if event == "open" or event.startswith(("os.", "shutil.", "fcntl.")):
        touched.append(event)


sys.addaudithook(watch)


def instants(work, folder):
    """What is in ``folder`` when a kill comes at any instant of ``work``."""
    made = []

    def trace(frame, event, _argument):
        if frame.f_code.co_filename not in OURS:
            return None
        if event == "line" and touched:
            now = contents(folder)
            if not made or now != made[-1]:
                made.append(now)
            touched.clear()
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return made


def contents(folder):
    """Every folder and file below ``folder``, parents first; a folder has no bytes."""
    return {
        path: None if path.is_dir() else path.read_bytes() for path in sorted(folder.rglob("*"))
    }


def go_back(folder, before):
    """The folder as it was at an instant."""
    shutil.rmtree(folder)
    folder.mkdir()
    for path, data in before.items():
        if data is None:
            path.mkdir()
        else:
            path.write_bytes(data)


def found(folder):
    """What the core would read, and what else is there that should not."""
    conf = folder / "conf"
    files = {
        str(path.relative_to(conf)): path.read_bytes() for path in conf.rglob("*") if path.is_file()
    }
    room = SaveRoom.of(folder / "var", "prod")
    rest = {path.name for path in room.folder.iterdir()} - {"lock"}
    empty = [path for path in conf.rglob("*") if path.is_dir() and not any(path.iterdir())]
    return files, rest, empty


def check(folder, context):
    """Which version is there: 0 the old or 1 the new one."""
    files, rest, empty = found(folder)
    assert files in (OLD, NEW), (context, sorted(files))
    assert len(rest) == 1, (context, rest)
    (backup,) = rest
    assert (backup == "backup-earlier") == (files == OLD), (context, backup)
    assert not empty, (context, empty)
    return int(files == NEW)


def recovered(folder, kills):
    """How often it comes to the old and to the new version behind one of these kills."""
    versions = [0, 0]
    for number, before in enumerate(kills):
        go_back(folder, before)
        recover_all(folder / "var")
        versions[check(folder, number)] += 1
        assert not versions[1] or check(folder, number), "the old version after the new one"
    return versions


def main(folder, what):
    site = Path(folder)
    lay_out(site)
    saving = instants(lambda: save_all(site), site)
    assert check(site, "done") == 1
    if what == "save":
        print(*recovered(site, saving))
        return
    versions = [0, 0]
    for number, before in enumerate(saving):
        go_back(site, before)
        recovering = instants(lambda: recover_all(site / "var"), site)
        check(site, number)
        for version, count in enumerate(recovered(site, recovering)):
            versions[version] += count
    print(*versions)


if __name__ == "__main__":
    main(*sys.argv[1:])
