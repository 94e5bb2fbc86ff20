"""Sites of a few object files for the tests of model, editor and precheck."""

from pathlib import Path

from attrs import frozen

from monrest.config import ConfigTool
from monrest.objectconfig.model import SiteFile, load
from monrest.objectconfig.object_editor import Editor


@frozen
class Site:
    id: str = "a"
    name: str = "SiteA"


def write(folder: Path, files: dict[str, str]) -> ConfigTool:
    """Write object files below a folder; gives the settings that find them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return ConfigTool(obj_dir=(str(folder),))


def site(folder: Path, text: str = "", **files: str):
    """The model of a site with ``x.cfg`` and, by name without ``.cfg``, more files."""
    named = {f"{name}.cfg": content for name, content in files.items()}
    return load(write(folder, {"x.cfg": text, **named} if text else named))


def define(kind: str, *lines: str) -> str:
    """The text of one definition."""
    return "\n".join([f"define {kind} {{", *(f"  {line}" for line in lines), "}", "", ""])


def changed(editor: Editor) -> dict[str, SiteFile]:
    """The files with another text than before the edits; ``empty`` ones are to be deleted."""
    before = editor.base.loaded
    return {
        path: file
        for path, file in editor.model.loaded.items()
        if (
            file.document.data() != before[path].document.data()
            if path in before
            else not file.document.empty
        )
    }
