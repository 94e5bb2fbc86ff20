"""What is built from a checkout: source distribution, wheel, Debian package, files for systemd."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
import urllib.request
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from monrest import __version__
from monrest.base.installed import shipped
from tests.forks import REPOSITORY

PACKAGES = sysconfig.get_path("purelib")
LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv", ".samples", ".*_cache", ".hypothesis", ".coverage*", "htmlcov"),
    *("*.egg-info", "__pycache__", "build", "dist", "tests", "bench", "dropin.cache"),
)
BUILD = "import sys; from setuptools import build_meta as m; print(m.build_{kind}(sys.argv[1]))"
TWISTD = "from twisted.scripts.twistd import run; run()"


def ran(*command, **more):
    """What a command printed, which must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def built(kind, source, folder):
    """Build a distribution by the hooks that pip calls; its path."""
    said = ran(sys.executable, "-c", BUILD.format(kind=kind), str(folder), cwd=source)
    return folder / said.splitlines()[-1]


def files_of(folder):
    """The files of the package in a folder, without what Python compiled."""
    found = (path.relative_to(folder) for path in (folder / "monrest").rglob("*.*"))
    return {path for path in found if path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The source distribution of this checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    # A copy: what an earlier build left in the checkout would be taken along.
    checkout = shutil.copytree(REPOSITORY, folder / "checkout", ignore=LEFT_OUT)
    return built("sdist", checkout, folder)


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that is built from the source distribution and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return built("wheel", source, folder)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with the wheel, where the libraries are those of the tests."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python))
    ran(*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel))
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(f"{PACKAGES}\n")
    return folder


def test_the_wheel_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(archive.read(metadata).decode())
    assert (told["Name"], told["Version"]) == ("monrest", __version__)
    assert told["Author"] == "the monrest authors"
    assert told.get("License-Expression") or told.get("License") == "MIT"
    assert any("licenses/LICENSE" in name for name in names)
    assert {"postgresql", "reports"} <= set(told.get_all("Provides-Extra"))
    assert not told.get_all("Project-URL")
    assert not told.get_all("Home-page")
    assert not [one for one in told.get_all("Classifier") if one.startswith("License")]


def test_the_wheel_carries_all_that_an_operator_needs(installed):
    (package,) = installed.glob("lib/python*/site-packages/monrest")
    held = {path.relative_to(package / "etc") for path in (package / "etc").rglob("*")}
    assert held == {path.relative_to(REPOSITORY / "etc") for path in shipped("").rglob("*")}
    pages = [path.relative_to(REPOSITORY) for path in (REPOSITORY / "docs").rglob("*.md")]
    for name in ("README.md", "CHANGELOG.md", *pages):
        text = (installed / "share/doc/monrest" / name).read_bytes()
        assert text == (REPOSITORY / name).read_bytes()
    assert (installed / "share/man/man1/monrest.1").is_file()
    assert files_of(REPOSITORY) == {
        path for path in files_of(package.parent) if path.parts[1] != "etc"
    }


def test_a_wheel_that_is_built_after_the_book_carries_it(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for name in ("index.html", "guide/jobs.html", ".doctrees/index.doctree", "objects.inv"):
        path = source / "docs/_build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    with zipfile.ZipFile(built("wheel", source, tmp_path)) as archive:
        held = {name for name in archive.namelist() if name.startswith("monrest/book/")}
    assert held == {"monrest/book/index.html", "monrest/book/guide/jobs.html"}


def test_the_examples_are_printed(installed, tmp_path):
    def said(*options):
        monrest = str(installed / "bin" / "monrest")
        return ran(monrest, "config", "example", *options, cwd=tmp_path)

    assert said() == (REPOSITORY / "etc/monrest.toml").read_text()
    for option, name in (
        ("--unit", "monrest.service"),
        ("--socket", "monrest.socket"),
        ("--sysusers", "monrest.sysusers"),
        ("--tmpfiles", "monrest.tmpfiles"),
    ):
        assert said(option) == (REPOSITORY / "etc" / name).read_text()


def test_what_is_installed_starts(installed, tmp_path):
    command = (str(installed / "bin" / "python"), "-c", TWISTD, "--nodaemon", "--pidfile=")
    with subprocess.Popen(
        [*command, "monrest", "--demo", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
    ) as daemon:  # fmt: skip
        try:
            lines = iter(daemon.stdout.readline, "")
            found = (re.search(r"demo: (http\S+)/  key (\S+) ", line) for line in lines)
            address, key = next(one for one in found if one).groups()
            headers = {"X-Mon-Auth-Key": key, "X-Mon-Auth-User": "admin"}
            request = urllib.request.Request(f"{address}/mon", headers=headers)
            with urllib.request.urlopen(request, timeout=300) as answer:
                assert f'"mon_version":"{__version__}"'.encode() in answer.read()
        finally:
            daemon.terminate()
            daemon.communicate(timeout=300)
    assert daemon.returncode == -signal.SIGTERM  # as twistd ends


def test_systemd_understands_the_units(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    programs = Path(sys.executable).parent
    for name in ("monrest.service", "monrest.socket"):
        text = shipped(name).read_text().replace("/opt/monrest/bin", str(programs))
        (tmp_path / name).write_text(text)
    said = subprocess.run(
        [program, "verify", "--man=no", str(tmp_path / "monrest.service")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (said.stdout, said.stderr, said.returncode) == ("", "", 0)


def test_the_unit_reloads_on_a_systemd_of_2021():
    unit = shipped("monrest.service").read_text().splitlines()
    assert "Type=notify" in unit
    assert "ExecReload=/bin/kill -HUP $MAINPID" in unit
    assert not [line for line in unit if line.startswith("ProcSubset")]


def test_system_packages_are_announced_and_can_be_left_out(tmp_path):
    """Where programs are missing: by a copy of the script that finds none but these."""
    for name, text in {
        "apt-get": '[ "$1" != --simulate ] || { echo "Inst libfar (1)"; exit 0; }; '
        f'echo "$@" >> {tmp_path}/installed; exit 100',
        "id": "echo 0",
        "env": 'while :; do case "$1" in *=*) shift ;; *) exec "$@" ;; esac; done',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("cut", "tr", "grep"):
        (tmp_path / name).symlink_to(shutil.which(name))
    script = (REPOSITORY / "tests/install-cores.sh").read_text()
    alone = script.replace('PATH="$PATH:/usr/sbin:/sbin"', f"PATH={tmp_path}")
    assert alone != script

    def install(*arguments, **more):
        done = subprocess.run(
            ["/bin/sh", "-c", alone, "install-cores", *arguments],
            capture_output=True, text=True, check=False, env={"PATH": str(tmp_path), **more},
        )  # fmt: skip
        called = (tmp_path / "installed").exists()
        return done.returncode, done.stdout + done.stderr, called

    status, said, called = install("--plan")
    assert (status, called) == (0, False)
    assert "as root" in said
    assert "MONREST_INSTALL=0" in said
    assert "icinga2-bin" in said
    # A mail command brings an MTA, which is the smallest; where one is there, it stays.
    assert said.splitlines()[0].split()[-1] == "dma"
    assert said.splitlines()[1] == "With all that they need: libfar"
    (tmp_path / "sendmail").symlink_to("/bin/true")
    assert "dma" not in install("--plan")[1]
    assert install("--plan", MONREST_INSTALL="0") == (0, "", False)
    status, said, called = install(MONREST_INSTALL="0")
    assert (status, called) == (1, False)
    assert "MONREST_INSTALL=0" in said
    assert install()[2]


def test_tests_begin_with_what_they_will_install():
    lines = (REPOSITORY / "Makefile").read_text().splitlines()
    assert next(line for line in lines if line.startswith("test:")).split()[1] == "plan"


PYTHON = "/usr/bin/python3"
RECORDER = '#!/bin/sh\necho "$*" >>/calls\n'
OFFLINE = """#!/bin/sh
case "$*" in *daemon-reload*) ;; *) SYSTEMD_OFFLINE=1 exec /usr/bin/systemctl "$@" ;; esac
"""
LOOPBACK = """
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))
"""
"""SIOCSIFFLAGS: up and running."""


PIP = """#!/bin/sh
set -e
{prefix}/bin/pip "$@"
home=${{3%/bin/python}}
touch "$home/bin/tool"
cd "$home"/lib/python3*/site-packages
mkdir -p library/tests
touch library/module.py library/tests/module.py
"""
"""Brings what libraries bring that are left out by the tests."""


def why_no_package():
    """Why a package cannot be built and tried here; empty if it can."""
    missing = [one for one in ("dpkg-deb", "unshare", PYTHON) if shutil.which(one) is None]
    if missing:
        assert not os.environ.get("MONREST_CI"), f"{missing} are missing"
        return f"{missing} are missing"
    if os.geteuid():
        return "only root installs packages"
    if f"Python {sys.version_info[0]}.{sys.version_info[1]}." not in ran(PYTHON, "--version"):
        return f"the libraries of these tests are not those of {PYTHON}"
    tried = subprocess.run(["unshare", "-mpn", "--fork", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "the kernel gives nobody files of their own here"


def until(condition, what):
    """Wait for another process."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting until {what}"
        time.sleep(0.5)  # each look is a process


def child_of(process):
    """The number of the process that a program has started for itself, as seen from outside."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


class Machine:
    """This machine as others would see it: what is written goes away with it.

    It has its own processes and network. ``shared`` is its ``/shared``, and the libraries of the
    tests are its ``/libraries``.
    """

    def __init__(self, folder, shared):
        self.root = folder / "root"
        self.packages = shared
        prepare = f"""
            set -e
            cd {folder}; mount -t tmpfs none upper; mkdir upper/files upper/work
            mount -t overlay -o lowerdir=/,upperdir=upper/files,workdir=upper/work none root
            mkdir -p root/shared root/libraries root/run/systemd/system
            mount --bind {shared} root/shared; mount --bind {PACKAGES} root/libraries
            mount -t proc none root/proc; mount --rbind /dev root/dev
            {PYTHON} -c '{LOOPBACK}'
            echo ready; exec cat
        """
        (folder / "upper").mkdir(parents=True)
        self.root.mkdir()
        command = ("unshare", "-mpn", "--fork", "--kill-child", "sh", "-c", prepare)
        self.first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.first.stdout.readline() == b"ready\n"
        self.inside = (
            *("nsenter", "-t", str(child_of(self.first)), "-m", "-p", "-n"),
            *("chroot", str(self.root), "env", "PYTHONPATH=/libraries", "LC_ALL=C.UTF-8"),
        )
        # There is no systemd that would run here: what it is to do is seen in the calls.
        for name, text in (("deb-systemd-invoke", RECORDER), ("systemctl", OFFLINE)):
            self.sh(f"cat >/usr/local/bin/{name}; chmod 755 /usr/local/bin/{name}", text)

    def run(self, *command, **more):
        """How a command ended there, and what it said."""
        done = subprocess.run(
            [*self.inside, *command], capture_output=True, text=True, check=False, **more
        )
        return done.returncode, done.stdout + done.stderr

    def sh(self, line, given=""):
        """What a command of the shell said, which must succeed."""
        status, said = self.run("sh", "-c", line, input=given)
        assert status == 0, (line, said)
        return said.rstrip("\n")

    def start(self, line):
        """Start a command of the unit as the unit's user."""
        as_user = ("setpriv", "--reuid=monrest", "--regid=monrest", "--init-groups")
        limits = ("--no-new-privs", "--bounding-set=-all", "env", "HOME=/var/lib/monrest")
        return subprocess.Popen(
            [*self.inside, *as_user, *limits, *line.split()],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def end(self):
        """End everything that runs there."""
        self.first.stdin.close()
        self.first.wait(300)


@pytest.fixture(scope="module")
def packages(wheel, tmp_path_factory):
    """A folder with the Debian package, and with the next one."""
    if reason := why_no_package():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("packages")
    pip = tmp_path_factory.mktemp("pip") / "pip"
    pip.write_text(PIP.format(prefix=sys.prefix))
    pip.chmod(0o755)
    ran(
        *("sh", "debian/build.sh", str(wheel), str(folder), "--no-deps", "--no-index"),
        cwd=REPOSITORY,
        env={**os.environ, "DPKG_DEB_COMPRESSOR_TYPE": "none", "PIP": str(pip)},
    )
    (made,) = folder.glob("*.deb")
    assert made.name.startswith(f"monrest_{__version__}-1_")
    tree = folder / "tree"
    ran("dpkg-deb", "--raw-extract", str(made), str(tree))
    # Without the libraries there is no twistd; it is a program of one of them.
    (tree / "opt/monrest/bin/twistd").write_text(f"#!/opt/monrest/bin/python\n{TWISTD}\n")
    (tree / "opt/monrest/bin/twistd").chmod(0o755)
    control = (tree / "DEBIAN/control").read_text()
    for revision in ("-1", "-2"):
        text = control.replace(f"{__version__}-1", __version__ + revision)
        (tree / "DEBIAN/control").write_text(text)
        ran("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(folder))
    shutil.rmtree(tree)
    return folder


def test_a_debian_package_from_its_installation_to_its_purge(packages, tmp_path):
    machine = Machine(tmp_path, packages)
    try:
        life_of_a_package(machine, sorted(path.name for path in packages.iterdir()))
    finally:
        machine.end()


def life_of_a_package(machine, names):
    """What an administrator does, and sees."""
    config, unit = "/etc/monrest/monrest.toml", "/usr/lib/systemd/system/monrest.service"
    wanted = "/etc/systemd/system/multi-user.target.wants/monrest.service"

    def dpkg(*arguments):
        """What systemd is to do then."""
        machine.sh(">/calls")
        machine.sh(f"dpkg --no-triggers {' '.join(arguments)}")
        return machine.sh("cat /calls")

    def serves():
        return machine.run("monrest", "r", "/mon/ready")[0] == 0

    def started():
        machine.sh("install -d -m 755 -o monrest -g monrest /run/monrest")
        lines = machine.sh(f"cat {unit}").splitlines()
        before, command = (
            next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))
            for name in ("ExecStartPre", "ExecStart")
        )
        with machine.start(before) as check:
            assert "is good" in check.communicate(timeout=300)[0]
        daemon = machine.start(command)
        until(lambda: daemon.poll() is not None or serves(), "the daemon answers")
        assert daemon.poll() is None, daemon.stdout.read()
        return daemon

    def stopped(daemon):
        os.kill(child_of(daemon), signal.SIGTERM)
        return daemon.communicate(timeout=300)[0]

    assert dpkg("-i", f"/shared/{names[0]}") == "start monrest.service"
    assert machine.sh("getent passwd monrest | cut -d: -f6,7") == (
        "/var/lib/monrest:/usr/sbin/nologin"
    )
    assert machine.sh(f"stat -c '%a %U %G' /var/lib/monrest {config}").splitlines() == [
        "700 monrest monrest",
        "640 root monrest",
    ]
    assert machine.sh("monrest --version") == f"monrest {__version__}"
    assert machine.sh(f"readlink {wanted}").endswith("/monrest.service")
    listed = ran("dpkg-deb", "--contents", str(machine.packages / names[0]))
    assert "./usr/share/man/man1/monrest.1.gz" in listed
    assert "./usr/share/doc/monrest/copyright" in listed
    # What the unit's Python reads, which could not keep it; the command reads the same.
    assert re.search(r"/monrest/__pycache__/tap\.cpython-3[0-9]+\.opt-2\.pyc", listed)
    assert not re.search(r"/[a-z_]+\.cpython-3[0-9]+\.pyc", listed)
    assert machine.sh("head -1 /opt/monrest/bin/monrest") == "#!/opt/monrest/bin/python -OO"
    # No programs and tests of libraries.
    assert machine.sh("ls /opt/monrest/bin").split() == [
        "monrest", "python", "python3", *machine.sh("cd /opt/monrest/bin; ls python3.*").split(),
        "twistd",
    ]  # fmt: skip
    assert "/library/module.py" in listed
    assert "/library/tests" not in listed

    daemon = started()
    assert machine.sh("stat -c '%U' /var/lib/monrest/monrest.sqlite") == "monrest"
    machine.sh("monrest key create --user ann --comment kept")
    machine.sh(f"echo '# ours' >>{config}")

    assert dpkg("-i", f"/shared/{names[1]}") == "restart monrest.service"
    assert machine.sh("dpkg-query -W -f '${Version}' monrest") == f"{__version__}-2"
    assert serves()
    assert "Traceback" not in stopped(daemon)
    daemon = started()
    assert '"kept"' in machine.sh("monrest key list --json")
    assert machine.sh(f"tail -1 {config}") == "# ours"
    assert machine.sh(f"stat -c '%a %U %G' {config}") == "640 root monrest"
    assert "Traceback" not in stopped(daemon)

    assert dpkg("-r", "monrest") == "stop monrest.service"
    gone = ["/opt/monrest", "/usr/bin/monrest", unit]
    kept = [config, "/var/lib/monrest/monrest.sqlite"]
    assert machine.sh(f"ls -d {' '.join([*gone, *kept])} 2>/dev/null || true").split() == kept
    dpkg("--purge", "monrest")
    left = machine.sh(f"ls -d {' '.join(gone)} /etc/monrest /var/lib/monrest {wanted} 2>&1 || true")
    assert len(left.splitlines()) == left.count("No such file") == 6
    assert machine.run("getent", "passwd", "monrest")[0] != 0
    assert machine.run("getent", "group", "monrest")[0] != 0
