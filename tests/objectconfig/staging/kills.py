"""Kills at every instant of a save that differs from the one before: ``kills.py FOLDER WHAT``.

Each save runs in a process forked for it, which ends itself at the first line of our own code
after so many calls that touch the file system. Then the next process recovers (``save``), or is
killed at each such instant while it does (``recovery``). What is checked: either all files are
the old ones or all are the new ones, and nothing else is left behind. Prints how often it came
to the old and to the new ones.
"""

from __future__ import annotations

import os
import shutil
import signal
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


def killed(work, calls):
    """Whether ``work`` in another process was killed after so many calls, before it was done."""
    child = os.fork()
    if child == 0:
        made = 0

        def watch(event, _arguments):
            nonlocal made
            if event == "open" or event.startswith(("os.", "shutil.", "fcntl.")):
                made += 1

        def trace(frame, event, _argument):
            if frame.f_code.co_filename not in OURS:
                return None
            if event == "line" and made > calls:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.addaudithook(watch)
        sys.settrace(trace)
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status != 0


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


def while_saving(folder):
    calls = 0
    versions = [0, 0]
    lay_out(folder)
    while killed(lambda: save_all(folder), calls):
        recover_all(folder / "var")
        versions[check(folder, calls)] += 1
        assert not versions[1] or check(folder, calls), "the old version after the new one"
        calls += 1
        lay_out(folder)
    assert check(folder, "done") == 1
    return versions


def while_recovering(folder, every):
    """Kill every so manieth save, and each recovery from it at every instant."""
    versions = [0, 0]
    moment = 0
    lay_out(folder)
    while killed(lambda: save_all(folder), moment):
        calls = 0
        while killed(lambda: recover_all(folder / "var"), calls):
            recover_all(folder / "var")
            versions[check(folder, (moment, calls))] += 1
            calls += 1
            lay_out(folder)
            assert killed(lambda: save_all(folder), moment)
        check(folder, (moment, "done"))
        moment += every
        lay_out(folder)
    return versions


def main(folder, what, *arguments):
    if what == "save":
        print(*while_saving(Path(folder)))
    else:
        print(*while_recovering(Path(folder), int(*arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
