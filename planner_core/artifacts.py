"""Files written whole or not at all.

Owns: `write_files` (one transaction over several files of one folder), and the refusal to write inside the
planner's own package.
Refuses: what the files say (see `plan_artifacts` and `reports`).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from planner_core.errors import ArtifactError, Fault, InvalidSpec, shorten
from planner_core.strict_json import clean_text

ARTIFACTS_FOLDER: Final = "planner_artifacts"
MAX_PATH_CHARACTERS: Final = 4096

_PACKAGE = Path(__file__).resolve().parent
_REASONS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed here",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.ENOTDIR: "a part of the path is a file, not a directory",
    errno.ENAMETOOLONG: "the path is too long",
    errno.ELOOP: "symbolic links go round in a circle",
}


def _refusal(path: Path, reason: str, fix: str) -> ArtifactError:
    return ArtifactError(f"{clean_text(str(path))[:300]}: not written: {reason}; fix: {fix}")


def _os_refusal(path: Path, error: OSError) -> ArtifactError:
    reason = _REASONS.get(error.errno or 0, clean_text(error.strerror or "the system refused"))
    return _refusal(path, reason, "make room there, or name another directory")


def refuse_package(folder: Path) -> Path:
    """Return a folder with every symbolic link resolved; refuse one inside the planner's own package.

    Parameters
    ----------
    folder : Path
        Where something is to be written.

    Returns
    -------
    Path

    Raises
    ------
    InvalidSpec
        It lies in the package.
    ArtifactError
        It is no path.
    """
    if "\x00" in str(folder) or len(str(folder)) > MAX_PATH_CHARACTERS:
        raise ArtifactError(f"{shorten(str(folder))}: not written: not a path; fix: name a directory")
    try:
        real = Path(os.path.realpath(folder))
    except OSError as error:
        raise _os_refusal(folder, error) from None
    if real.is_relative_to(_PACKAGE):
        fault = Fault(
            where="the directory to write in",
            given=f"{shorten(str(folder))}, inside the planner's own package",
            allowed="a directory outside of it",
            fix="name another one (--project-root, --csv)",
        )
        raise InvalidSpec([fault])
    return real


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder and its parents; return those that are new, outermost first."""
    missing = []
    at = folder
    while not at.exists() and at != at.parent:
        missing.append(at)
        at = at.parent
    made: list[Path] = []
    try:
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            made.append(path)
    except OSError:
        _remove_folders(made)
        raise
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return made


def _remove_folders(made: list[Path]) -> None:
    for path in reversed(made):
        with suppress(OSError):
            path.rmdir()


def _write_and_sync(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)


def _check_target(path: Path, *, shown: Path) -> None:
    """Only a regular file is ever replaced: not a directory, a device, a pipe or a link to something else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise _refusal(shown, "what is there is not a regular file", "name another file")


def _keep_aside(path: Path, aside: Path) -> None:
    """Give the file that is there a second name, so that it can be put back."""
    try:
        os.link(path, aside, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError:  # a file system without hard links
        os.rename(path, aside)


def _sync_folder(folder: Path) -> None:
    """Make the renames last; where a folder cannot be synced the files are whole all the same."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_files(folder: Path, files: Mapping[str, bytes | str]) -> tuple[Path, ...]:
    """Write files into one folder: all of them or, where one cannot be written, none.

    Parameters
    ----------
    folder : Path
        Made, with its parents, where it does not exist.
    files : mapping of str to bytes or str
        Content by plain file name; text is written as UTF-8.

    Returns
    -------
    tuple of Path
        Where they are.

    Raises
    ------
    InvalidSpec
        The folder lies in the package.
    ArtifactError
        With one line. Files that were there before are as they were, and nothing new is left behind.

    Notes
    -----
    Every file goes to a hidden one beside it first and is synced to the disk; only when all are there are
    they renamed into place, the old ones kept aside until the last rename is done.
    """
    real = refuse_package(folder)
    try:
        made = _make_folder(real)
    except OSError as error:
        raise _os_refusal(folder, error) from None
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    staged = {name: real / f".{name}.{token}.new" for name in files}
    kept = {name: real / f".{name}.{token}.old" for name in files}
    placed: list[str] = []
    at = folder
    try:
        for name, content in files.items():
            at = folder / name
            _check_target(real / name, shown=at)
            _write_and_sync(staged[name], content.encode("utf-8") if isinstance(content, str) else content)
        for name in files:
            at = folder / name
            _keep_aside(real / name, kept[name])
            placed.append(name)
            os.replace(staged[name], real / name)
    except BaseException as error:
        for name in placed:
            with suppress(OSError):
                if kept[name].exists():
                    os.replace(kept[name], real / name)
                else:
                    (real / name).unlink()
        for path in (*staged.values(), *kept.values()):
            with suppress(OSError):
                path.unlink()
        _remove_folders(made)
        if isinstance(error, OSError):
            raise _os_refusal(at, error) from None
        raise
    for path in kept.values():
        with suppress(OSError):
            path.unlink()
    _sync_folder(real)
    return tuple(folder / name for name in files)


def write_file(path: Path, content: bytes | str) -> Path:
    """Write one file, whole or not at all.

    Parameters
    ----------
    path : Path
        Where; a file of that name is replaced.
    content : bytes or str
        Text is written as UTF-8.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InvalidSpec, ArtifactError
        As for `write_files`.
    """
    if not path.name or path.name == "..":
        raise ArtifactError(f"{shorten(str(path))}: not written: no file name; fix: name a file")
    return write_files(path.parent, {path.name: content})[0]
