"""
The C library's heap, which NumPy takes large arrays from. It gives freed memory back to the system at once, and then each array of
the next execution is new pages: at 512 x 512 pixels that was a quarter of the time of a model. So a process keeps what it
has freed until it has had nothing to do for a while.
"""

from __future__ import annotations

import ctypes
import os

from .huge_pages import has_heap_settings

# Parameters of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
# Bytes that are kept at most, and of the largest array that is taken from the heap: glibc allows no more.
_KEPT_BYTES = 128 * 1024 * 1024
_LARGEST_BYTES = 32 * 1024 * 1024


def keep_freed():
    """
    Has the heap keep what is freed.

    Returns what gives it back to the system; None if the heap is another library's, or the environment has settings for it.
    """
    library = _library()
    if library is None:
        return None
    library.mallopt(_M_MMAP_THRESHOLD, _LARGEST_BYTES)
    library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    return lambda: library.malloc_trim(0)


def keep_one():
    """
    Has threads that begin later take memory from one heap, so that one instance uses what another has freed. Of a thread's own
    heap `malloc_trim` gives nothing back at its end, where the memory of an execution lies.
    """
    library = _library()
    if library is not None and "MALLOC_ARENA_MAX" not in os.environ:
        library.mallopt(_M_ARENA_MAX, 1)


def _library():
    """The C library; None if it is none with such a heap, or has settings."""
    library = ctypes.CDLL(None)
    has_heap = hasattr(library, "mallopt") and hasattr(library, "malloc_trim")
    return library if has_heap and not has_heap_settings() else None
