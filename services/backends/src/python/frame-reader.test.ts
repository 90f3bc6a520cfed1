import { ServeError } from '@tutti/errors'
import { array, assert, constant, integer, oneof, property, tuple, uint8Array } from 'fast-check'
import t from 'tap'
import { InstanceFrameReader } from './frame-reader.ts'
import {
  FrameMetaReader,
  FrameWriter,
  HEADER_BYTES,
  type InstanceFrame,
  writeHeader,
} from './frames.ts'

/** One frame as bytes. */
function frameOf(op: number, id: number, meta: Uint8Array, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  writeHeader(header, { op, id, metaBytes: meta.length, payloadBytes: payload.length })
  return Buffer.concat([header, meta, payload])
}

/** Passes what may be thrown. */
const guard = (act: () => void): void => {
  try {
    act()
  } catch (error) {
    if (!(error instanceof ServeError) || error.reason !== 'MALFORMED_MESSAGE') throw error
  }
}

const header = (metaBytes: number, payloadBytes: number): Buffer => {
  const bytes = Buffer.alloc(HEADER_BYTES)
  writeHeader(bytes, { op: 35, id: 1, metaBytes, payloadBytes })
  return bytes
}

const FRAMES = array(
  tuple(
    integer({ min: 0, max: 65_535 }),
    integer({ min: 0, max: 2 ** 31 }),
    uint8Array({ maxLength: 60 }),
    uint8Array({ maxLength: 200 }),
  ),
  { maxLength: 8 },
)

await t.test('frames are the same however they are cut', async (t) => {
  assert(
    property(
      FRAMES,
      array(integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 }),
      (frames, cuts) => {
        const bytes = Buffer.concat(frames.map((frame) => frameOf(...frame)))
        const got: InstanceFrame[] = []
        const reader = new InstanceFrameReader(200, (frame) => {
          // A frame that is kept must not change with what comes later.
          got.push({ ...frame, meta: Buffer.from(frame.meta) })
        })
        for (let at = 0, i = 0; at < bytes.length; i += 1) {
          const size = cuts[i % cuts.length] ?? 1
          reader.push(bytes.subarray(at, at + size))
          at += size
        }
        t.strictSame(
          got.map(({ op, id, meta, payload }) => [
            op,
            id,
            meta.toString('hex'),
            payload.toString('hex'),
          ]),
          frames.map(([op, id, meta, payload]) => [
            op,
            id,
            Buffer.from(meta).toString('hex'),
            Buffer.from(payload).toString('hex'),
          ]),
        )
      },
    ),
    { numRuns: 60 },
  )
})

await t.test('a long text that comes in pieces is moved once', async (t) => {
  const text = Buffer.alloc(32 * 1024 * 1024, 'x')
  const bytes = frameOf(35, 1, text, Buffer.from('end'))
  const joins = t.capture(Buffer, 'concat', Buffer.concat.bind(Buffer))
  const got: InstanceFrame[] = []
  const reader = new InstanceFrameReader(200, (frame) => got.push(frame))
  // The first pieces cut the header.
  for (let at = 0, size = 10; at < bytes.length; at += size, size = at < 40 ? 10 : 65_536) {
    reader.push(bytes.subarray(at, at + size))
  }
  t.equal(got.length, 1)
  t.ok(got[0]?.meta.equals(text))
  t.equal(got[0]?.payload.toString(), 'end')
  const joined = joins().flatMap(({ args: [list] }) => list.map(({ length }) => length))
  t.ok(Math.max(...joined) < HEADER_BYTES, 'pieces of the header alone are joined')
})

await t.test('whatever a process writes is a frame or a MALFORMED_MESSAGE', async (t) => {
  const anything = oneof(
    uint8Array({ maxLength: 300 }),
    tuple(integer({ min: 33, max: 46 }), uint8Array({ maxLength: 200 })).map(([op, meta]) =>
      frameOf(op, 1, meta, new Uint8Array(0)),
    ),
    constant(frameOf(35, 1, Buffer.alloc(32, 255), new Uint8Array(0))),
  )
  assert(
    property(array(anything, { maxLength: 4 }), (chunks) => {
      const reader = new InstanceFrameReader(1000, ({ meta }) => {
        guard(() => new FrameMetaReader(meta).result())
        guard(() => new FrameMetaReader(meta).response())
      })
      guard(() => {
        for (const chunk of chunks) reader.push(Buffer.from(chunk))
      })
    }),
    { numRuns: 500 },
  )
  t.pass('nothing else was thrown')
})

await t.test('a frame that announces too much is refused before it comes', async (t) => {
  const reader = new InstanceFrameReader(1000, () => {})
  t.throws(() => reader.push(header(0, 1001)), {
    message: 'the process of the model wrote 1001 bytes in a frame, want at most 1000',
  })
  t.throws(() => new InstanceFrameReader(1000, () => {}).push(header(2 ** 31, 0)), {
    message: /2147483648 bytes of texts/,
  })
  t.throws(() => new InstanceFrameReader(1000, () => {}).push(Buffer.alloc(40)), {
    message: /0x0 where a frame begins/,
  })
})

await t.test('what is written can be read', async (t) => {
  const tensor = {
    name: 'é'.repeat(600),
    datatype: 'FP16' as const,
    shape: [2, 0, 3],
    place: 1 as const,
    offset: 2 ** 40,
    size: 0,
  }
  const frame = new FrameWriter()
    .response(1, [tensor, { ...tensor, name: 'b' }], '{"a":1}')
    .finish(6, 7, 0)
  const response = new FrameMetaReader(frame.subarray(HEADER_BYTES)).response()
  t.same(response, {
    isPresent: true,
    isAgain: false,
    isFinal: true,
    tensors: [tensor, { ...tensor, name: 'b' }],
    json: '{"a":1}',
  })
})

await t.test(
  'what is known of an earlier response is read the same, and nothing else is',
  async (t) => {
    const tensor = {
      name: 'y',
      datatype: 'UINT8' as const,
      shape: [3],
      place: 0 as const,
      offset: 0,
      size: 3,
    }
    const metaOf = (...tensors: readonly (typeof tensor)[]): Buffer =>
      new FrameWriter().response(1, tensors, '').finish(6, 7, 0).subarray(HEADER_BYTES)
    const [one, two] = [metaOf(tensor), metaOf(tensor, tensor)]
    for (let i = 0; i < 2; i += 1) {
      t.same(new FrameMetaReader(one).response().tensors, [tensor])
      t.same(new FrameMetaReader(two).response().tensors, [tensor, tensor])
    }
    // The count is another one, the bytes are cut, the size does not fit.
    for (const [at, value] of [
      [2, 2],
      [2, 0],
      [4, one.length],
      [4, 1],
    ] as const) {
      const wrong = Buffer.from(one)
      wrong[at] = value
      t.throws(() => new FrameMetaReader(wrong).response(), {
        message: /the process of the model wrote/,
      })
    }
    t.throws(() => new FrameMetaReader(one.subarray(0, -1)).response(), {
      message: /the process of the model wrote/,
    })
    t.throws(() => new FrameMetaReader(metaOf({ ...tensor, size: 2 })).response(), {
      message: /2 bytes for tensor "y", UINT8 \[3\]/,
    })
  },
)
