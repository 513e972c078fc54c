"""What allocators keep of memory that was freed, what is mapped of files, and how the system gets it back.

A process that has done much keeps much: the C library keeps an arena for each thread that allocates, and Arrow's
allocator a heap for each, of which a thread gives back its own only. Where somebody said how much memory a process may
take, that counts: Arrow then allocates by the C library, too, which gives back what is large at once, but for what its
readers of files and its groups take. Where nobody did, it makes what comes next faster, and is left alone.

On systems without the C library's calls nothing is done for it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

#: Parameters of glibc's `mallopt`: from which size memory is freed at the end of the heap, from which it is had from
#: the system by itself and given back at once, and how many arenas there are.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT_AT_THE_END = 16 << 20
_HAD_BY_ITSELF = 1 << 20
_ARENAS = 2
#: For its `madvise`, that pages are not needed for now.
_DONT_NEED = 4


def keep_little() -> None:
    """Has the C library keep little of what is freed from now on, and Arrow take memory there, in this process."""
    library = _library()
    if library is not None:
        import pyarrow as pa  # not everybody who imports the budget has loaded it

        _own_pool()
        pa.set_memory_pool(pa.system_memory_pool())
        library.mallopt(_ARENA_MAX, _ARENAS)
        library.mallopt(_MMAP_THRESHOLD, _HAD_BY_ITSELF)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_AT_THE_END)


def return_freed() -> None:
    """Gives back what is free: of Arrow's what this thread had, of the C library's all. It takes some milliseconds."""
    _own_pool().release_unused()
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def let_go(address: int, size: int) -> None:
    """Gives back the pages of a file that is mapped to be read, which are read from it again once they are looked at.

    Args:
        address: Where it is mapped, from its beginning.
        size: Its size.
    """
    library = _library()
    if library is not None:
        library.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), _DONT_NEED)


@cache
def _own_pool() -> Any:
    """Returns the pool that Arrow allocates by where it asks for none: the default, before another is."""
    import pyarrow as pa

    return pa.default_memory_pool()


@cache
def _library() -> Any:
    """Returns the C library, None if it is not glibc."""
    found = ctypes.CDLL(None)
    return found if hasattr(found, "mallopt") and hasattr(found, "malloc_trim") else None
