"""The process's side of the frames: what the order of events between threads and finalisers must not change."""
import asyncio
import socket
import struct
import threading
import types
import unittest

import triton_python_backend_utils as pb_utils
from tutti_worker.arena import Region
from tutti_worker.calls import Call
from tutti_worker.connection import Connection, Frame
from tutti_worker.frames import (
    KIND_RESPONSE,
    Op,
    arena_record,
    payload_record,
    read_execute,
    write_response,
)
from tutti_worker.host import Host
from tutti_worker.server import Server


class FakeConnection:
    """Keeps what is written, in order."""

    def __init__(self):
        self.written = []

    def send(self, op, id, meta=b"", payload=()):
        self.written.append((op, id))

    def post(self, op, id, meta=b""):
        self.written.append((op, id))


class WorkerCase(unittest.TestCase):
    def setUp(self):
        self.connection = FakeConnection()
        self.server = Server(self.connection, None, 1 << 20)


class TestWatch(WorkerCase):
    def region(self):
        return Region(bytearray(256), 64, 128)

    def test_of_a_region_that_is_not_used(self):
        self.assertIsNone(self.server.watch(None))
        self.assertIsNone(self.server.watch(self.region()))
        self.assertEqual(self.connection.written, [])

    def test_tells_of_the_end_after_the_server_was_told_that_there_is_a_rest(self):
        for ends_first in (True, False):
            with self.subTest(ends_first=ends_first):
                self.connection.written.clear()
                region = self.region()
                kept = region.bytes[10:20]
                told = self.server.watch(region)
                if ends_first:
                    del kept
                    self.assertEqual(self.connection.written, [])
                    told()
                else:
                    told()
                    self.assertEqual(self.connection.written, [])
                    del kept
                self.assertEqual(self.connection.written, [(Op.RELEASE, 64)])
                self.assertEqual(self.server._watches, {})


class TestHost(WorkerCase):
    def test_keeps_nothing_of_a_request_that_was_let_go_of(self):
        host = Host(self.server, "/models/m/1", pb_utils, "m_0")
        host.opened((7,), 0)
        self.server.handlers[Op.CANCEL](Frame(Op.CANCEL, 7, b"", None))
        self.assertEqual((len(host._credits), host._cancelled), (1, {7}))
        host.abandoned(7)
        self.assertEqual((host._credits, host._cancelled), ({}, set()))
        self.assertEqual(self.connection.written, [(Op.ABANDONED, 7)])
        # Credit that comes too late brings nothing back.
        self.server.handlers[Op.CREDIT](Frame(Op.CREDIT, 7, b"", None))
        self.assertEqual(host._credits, {})

    def test_hears_that_a_caller_has_left_before_the_main_thread_has_taken_its_request(self):
        host = Host(self.server, "/models/m/1", pb_utils, "m_0")
        host._server.link.need_pump = lambda: None
        cancel = self.server.handlers[Op.CANCEL]
        host.opened((6, 7), 0)
        cancel(Frame(Op.CANCEL, 8, b"", None))
        host.opened((8, 9), 0)
        self.assertEqual([host.is_cancelled(key) for key in (7, 8, 9)], [False, True, False])
        host.closed((6, 7, 8, 9))
        cancel(Frame(Op.CANCEL, 9, b"", None))
        self.assertEqual(host._cancelled, set())

    def test_tells_of_a_metric_with_the_next_frame_while_a_short_model_executes(self):
        near, far = socket.socketpair()
        self.addCleanup(near.close)
        self.addCleanup(far.close)
        far.setblocking(False)
        connection = Connection(near)
        host = Host(Server(connection, None, 1 << 20), "/models/m/1", pb_utils, "m_0")
        metric = struct.pack("<HHIQQBd", 0x5454, Op.METRIC, 9, 0, 3, 1, 2.5)
        host.metric_update(3, "set", 2.5)
        self.assertEqual(far.recv(100), metric)
        host.is_short = True
        host.metric_update(3, "set", 2.5)
        with self.assertRaises(BlockingIOError):
            far.recv(100)
        connection.send(Op.RESULT, 1)
        self.assertEqual(far.recv(100)[: len(metric)], metric)
        # A call from another thread is sent at once: its order to later messages must hold.
        thread = threading.Thread(target=host.metric_update, args=(3, "set", 2.5))
        thread.start()
        thread.join()
        self.assertEqual(far.recv(100), metric)
        host.metric_update(3, "set", 2.5)
        host.metric_remove(3)
        self.assertEqual(far.recv(200)[: len(metric)], metric)


class TestExecute(unittest.TestCase):
    def frame(self, record, size):
        head = struct.pack("<IIQQQQ", 2, 0, 0, 0, 0, 0)
        request = struct.pack("<QHHI", 7, 2, size, 8) + 2 * record + b'{"id":1}'
        return head + 2 * request

    def test_reads_requests_whatever_it_knows_of_their_tensors(self):
        here, there = payload_record("é", 8, (1, 16), 64), arena_record("é", 8, (1, 16), 4096, 64)
        for record in (here, there, here, there):
            for size in (2 * len(record), 0):
                _, _, requests = read_execute(self.frame(record, size))
                self.assertEqual([(key, context) for key, _, context in requests], 2 * [(7, {"id": 1})])
                read = [(t.name, t.datatype, t.shape, t.place, t.offset, t.size) for t in requests[1][1]]
                want = ("é", "INT32", (1, 16), 0, 0, 64) if record is here else ("é", "INT32", (1, 16), 1, 4096, 64)
                self.assertEqual(read, [want, want])


    def test_parameters_stay_the_text_behind_a_line_break(self):
        for text, context in (
            ('{"id":"a\\nb"}', {"id": "a\nb"}),
            ('\n{"p":"\\n\u0001é"}', {"parameters": '{"p":"\\n\u0001é"}'}),
            ('{"id":"a"}\n{"p":2.0}', {"id": "a", "parameters": '{"p":2.0}'}),
        ):
            json = text.encode()
            frame = struct.pack("<IIQQQQ", 1, 0, 0, 0, 0, 0) + struct.pack("<QHHI", 7, 0, 0, len(json)) + json
            self.assertEqual(read_execute(frame)[2], [(7, [], context)])


class TestCall(WorkerCase):
    def frame(self, flags):
        return Frame(Op.INFER_RESPONSE, 1, write_response(KIND_RESPONSE, flags, [], None), None)

    def test_outlives_a_loop_that_was_closed_while_it_was_waited_for(self):
        link = types.SimpleNamespace(need_pump=lambda: None)
        server = types.SimpleNamespace(connection=self.connection, link=link)
        call = Call(server, 1, lambda frame: frame, lambda id: None)

        async def give_up():
            await asyncio.wait_for(call.next_async(), 0.01)

        with self.assertRaises(asyncio.TimeoutError):
            asyncio.run(give_up())
        first = self.frame(0)
        call.take(first)
        self.assertIs(call.next(), first)
