"""Object files of a core in a folder of their own, and the settings with which a daemon edits them."""

import atexit
import functools
import os
import shlex
import shutil
import socket
import sys
import tempfile
import threading
from pathlib import Path

from tests.forks import DEMO, ran

from .cores import OBJECTS, EmbeddedCore
from .daemon import site

CHECK = Path(__file__).with_name("check.py")


@functools.cache
def check_program():
    """The embedded core's program as a command; a thread forks it, which costs a tenth of a start."""
    path = Path(tempfile.mkdtemp(prefix="monrest-check-")) / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.parent.chmod(0o755)
    path.chmod(0o777)
    listener.listen(64)
    atexit.register(shutil.rmtree, path.parent)

    def serve():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection):
        with connection:
            words = b"".join(iter(lambda: connection.recv(65536), b"")).decode().split("\0")
            status, output = ran([sys.executable, "-m", "monrest.demo", *words], program=DEMO)
            connection.sendall(f"{status}\n{output}".encode())

    threading.Thread(target=serve, daemon=True).start()
    return f"{shlex.quote(sys.executable)} -S -E {CHECK} {path}"


class Files:
    """``naemon.cfg`` and the folder ``objects`` with a copy of the suite's small site."""

    def __init__(self, folder):
        self.folder = Path(os.path.realpath(folder))
        self.objects = self.folder / "objects"
        self.objects.mkdir(parents=True)
        self.main = self.folder / "naemon.cfg"
        self.main.write_text("# main file\ncfg_dir=objects\n")
        self.site = self.objects / "site.cfg"
        self.site.write_bytes((OBJECTS / "site.cfg").read_bytes())

    def write(self, name, text):
        """Write one more object file and give its path."""
        path = self.objects / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def state(self):
        """Every file below the folder with its bytes."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def restore(self, state):
        """Bring every file back to what ``state`` said."""
        for name in self.state().keys() - state.keys():
            (self.folder / name).unlink()
        for name, data in state.items():
            path = self.folder / name
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)

    @property
    def check(self):
        """The command that checks these files as the embedded core does."""
        return f"{check_program()} --check-config {shlex.quote(str(self.main))}"

    def tool(self, **more):
        """The table ``configtool`` of a site."""
        return {"core_conf": str(self.main), "obj_check_cmd": self.check, **more}

    def as_site(self, key="s1", **more):
        """A site without a core, whose ``configtool`` has these."""
        return site(key, "unix:/nonexistent/live", configtool=self.tool(**more))


class ConfiguredCore(EmbeddedCore):
    """An embedded core that reads files which a daemon may edit."""

    def __init__(self, folder):
        self.files = Files(folder)
        super().__init__(folder, objects=self.files.main)

    def tool(self, **more):
        """The table ``configtool`` with the command that restarts this core."""
        reload = f"{self.files.check} --restart {shlex.quote(str(self.socket))}"
        return self.files.tool(obj_reload_cmd=reload, **more)
