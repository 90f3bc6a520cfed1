"""
The C library's heap, which NumPy takes large arrays from. It gives freed memory back to the system at once, and then each array of
the next execution is new pages: at 512 x 512 pixels that was a quarter of the time of a model. So a process keeps what it
has freed until it has had nothing to do for a while.
"""

from __future__ import annotations

import ctypes

from .huge_pages import has_heap_settings

# Of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# What is kept at most, and the largest array that is taken from the heap: glibc allows no more.
_KEPT_BYTES = 128 * 1024 * 1024
_LARGEST_BYTES = 32 * 1024 * 1024


def keep_freed():
    """
    Has the heap keep what is freed.

    Returns what gives it back to the system; None if the heap is another library's, or the environment has settings for it.
    """
    if has_heap_settings():
        return None
    library = ctypes.CDLL(None)
    try:
        configure, trim = library.mallopt, library.malloc_trim
    except AttributeError:
        return None
    configure(_M_MMAP_THRESHOLD, _LARGEST_BYTES)
    configure(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    return lambda: trim(0)
