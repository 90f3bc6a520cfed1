"""
A heap of huge pages, where the system gives them to programs that ask. A network reads and writes many MB for a request, and a
processor finds 2 MiB of them as fast as 4 KiB. NumPy asks for arrays from 4 MB; this is for all libraries that use the C library's heap.
"""

from __future__ import annotations

import os
import sys

# glibc reads it when a program starts, from 2.35 on; earlier ones pass over it.
_TUNABLES = "GLIBC_TUNABLES"
_ASKING = "glibc.malloc.hugetlb=1"
# Settings of the user, which count instead of ours.
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", _TUNABLES)
# An option of the interpreter that says that the program was started again; programs that models start have neither.
_AGAIN = "tutti-huge-pages"
_MODES = "/sys/kernel/mm/transparent_hugepage/enabled"


def has_heap_settings():
    """Whether the environment has settings for the heap."""
    return any(name in os.environ for name in _SETTINGS)


def ask_for_huge_pages():
    """Starts this program again with a heap that asks, if that changes anything and the environment has no settings. To be called first."""
    if _AGAIN in sys._xoptions:
        os.environ.pop(_TUNABLES, None)
        return
    arguments = getattr(sys, "orig_argv", None)
    if not sys.executable or arguments is None or has_heap_settings() or not _are_for_the_asking():
        return
    environment = {**os.environ, _TUNABLES: _ASKING}
    try:
        os.execve(sys.executable, [sys.executable, "-X", _AGAIN, *arguments[1:]], environment)
    except OSError:
        # Small pages, then.
        pass


def _are_for_the_asking():
    try:
        with open(_MODES) as file:
            return "[madvise]" in file.read()
    except OSError:
        return False
