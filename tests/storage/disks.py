"""A disk of one's own that a test may fill, and make read-only.

As root it is a small tmpfs. Without the right to mount one, a folder: it is full while no file of this process may
grow, and read-only while nobody may write to it.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
_SIZE = 4 << 20


@dataclass(frozen=True)
class Disk:
    """Is a mounted disk, or a folder in its stead."""

    root: Path
    is_mounted: bool

    @contextmanager
    def full(self, *, free_pages: int = 0) -> Iterator[None]:
        """Leaves so many pages free for the length of a block, then all of them."""
        if not self.is_mounted:
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (free_pages * PAGE, limits[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            return
        ballast = self.root / "ballast"
        try:
            with ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(PAGE))
        except OSError:
            with ballast.open("r+b") as file:
                file.truncate(max(0, ballast.stat().st_size // PAGE - free_pages) * PAGE)
        try:
            yield
        finally:
            ballast.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Lets nobody write for the length of a block."""
        if self.is_mounted:
            _mount("-o", "remount,ro", str(self.root))
            try:
                yield
            finally:
                _mount("-o", "remount,rw", str(self.root))
            return
        paths = [self.root, *self.root.rglob("*")]
        for path in paths:
            path.chmod(path.stat().st_mode & ~0o222)
        try:
            yield
        finally:
            for path in paths:
                path.chmod(path.stat().st_mode | 0o200)


@contextmanager
def small_disk(root: Path) -> Iterator[Disk]:
    """Yields a disk at a new folder."""
    root.mkdir()
    is_mounted = _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "mz-test", str(root))
    try:
        yield Disk(root, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(root)], check=True, timeout=30)


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], check=False, capture_output=True, timeout=30).returncode == 0
