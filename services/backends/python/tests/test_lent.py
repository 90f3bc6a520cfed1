import json
import mmap
import os
import unittest

import numpy as np

from tutti_worker.frames import Op
from tutti_worker.lent import SPAN_BYTES, LentArena, LentArenas

SIZE = 1 << 20
PART = 65536


class Told:
    def __init__(self):
        self.handlers = {}
        self.written = []
        self.connection = self

    def post(self, op, id, meta=b""):
        self.written.append((op, id, json.loads(meta or b"null")))


class Asked:
    def __init__(self, id, wanted=None):
        self.id = id
        self.meta = json.dumps(wanted).encode()


class LentCase(unittest.TestCase):
    def setUp(self):
        self.name = "tutti-%s" % self.id()
        self.file = os.memfd_create(self.name)
        self.addCleanup(os.close, self.file)
        os.ftruncate(self.file, SIZE)
        self.path = "/proc/self/fd/%d" % self.file
        self.lender = np.frombuffer(mmap.mmap(self.file, SIZE), np.uint8)
        self.lender[:] = 1


class TestLentArena(LentCase):
    def test_writes_are_private_and_gone_once_they_are_discarded(self):
        for looks in (True, False):
            with self.subTest(looks=looks):
                arena = LentArena(self.path, SIZE)
                self.addCleanup(arena.close)
                if not looks:
                    arena.close()
                seen = arena.region(PART, PART).bytes
                self.lender[PART : 2 * PART] = 2
                self.assertEqual((int(seen[0]), int(seen[-1])), (2, 2))
                seen[5] = 9
                self.assertEqual(int(self.lender[PART + 5]), 2)
                self.assertEqual(arena.discard_writes(PART, PART), looks)
                self.lender[PART : 2 * PART] = 3
                self.assertTrue(np.all(seen == 3))

    def test_what_was_not_written_is_not_mapped_again(self):
        arena = LentArena(self.path, SIZE)
        self.addCleanup(arena.close)
        pages = PART // mmap.PAGESIZE
        seen = arena.region(0, PART).bytes
        self.assertFalse(arena._is_written(0, pages))
        int(seen.sum())
        self.assertFalse(arena._is_written(0, pages))
        seen[-1] = 9
        self.assertTrue(arena._is_written(0, pages))
        self.assertFalse(arena._is_written(pages, pages))


class TestLentArenas(LentCase):
    def setUp(self):
        super().setUp()
        self.told = Told()
        self.arenas = LentArenas(self.told)
        self.map(7, {"number": 3, "path": self.path, "bytes": SIZE})
        self.told.written.clear()

    def map(self, id, wanted):
        self.told.handlers[Op.MAP](Asked(id, wanted))

    def test_tells_whether_it_could_map(self):
        self.map(8, {"number": 4, "path": "/nowhere", "bytes": SIZE})
        self.map(9, {"number": 4, "path": self.path, "bytes": SIZE})
        (refused, mapped) = self.told.written
        self.assertEqual((refused[:2], list(refused[2])), ((Op.MAPPED, 8), ["problem"]))
        self.assertEqual(mapped, (Op.MAPPED, 9, {}))

    def test_an_execution_that_lets_go_of_everything_tells_nothing(self):
        self.arenas.bytes_of(3 * SPAN_BYTES, PART)
        self.assertIsNone(self.arenas.watch(1))
        self.assertIsNone(self.arenas.watch(2))
        self.assertEqual((self.told.written, self.arenas.has_written), ([], False))

    def test_tells_of_the_end_of_the_last_after_the_server_was_told_that_there_is_a_rest(self):
        for ends_first in (True, False):
            with self.subTest(ends_first=ends_first):
                self.told.written.clear()
                one = self.arenas.bytes_of(3 * SPAN_BYTES, PART)[1:2]
                two = self.arenas.bytes_of(3 * SPAN_BYTES + PART, PART)[1:2]
                self.arenas.bytes_of(3 * SPAN_BYTES + 2 * PART, PART)
                told = self.arenas.watch(1)
                one[0] = two[0] = 9
                del one
                if ends_first:
                    del two
                    self.assertEqual(self.told.written, [])
                    told()
                else:
                    told()
                    self.assertEqual(self.told.written, [])
                    del two
                self.assertEqual(self.told.written, [(Op.RETURNED, 1, None)])
                self.assertEqual((self.arenas._watches, self.arenas.has_written), ({}, True))
                again = self.arenas.bytes_of(3 * SPAN_BYTES, 3 * PART)
                self.assertTrue(np.all(again == 1))
                del again
                self.assertIsNone(self.arenas.watch(2))

    def test_what_is_not_there_any_more_is_unmapped(self):
        def mappings():
            with open("/proc/self/maps") as maps:
                return sum(self.name in line for line in maps)

        self.assertEqual(mappings(), 2)
        self.told.handlers[Op.UNMAP](Asked(3))
        self.told.handlers[Op.UNMAP](Asked(3))
        self.assertEqual(mappings(), 1)
