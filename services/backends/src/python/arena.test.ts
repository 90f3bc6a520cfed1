import { setImmediate as nextTurn } from 'node:timers/promises'
import { array, assert, boolean, integer, property, tuple } from 'fast-check'
import t from 'tap'
import { Arena, type ArenaPart, PAGE_BYTES } from './arena.ts'
import { openSharedMemory, type SharedMapping } from './shared-memory.ts'

const SIZE = 1_048_576

/** A mapping that is none, for what only shares out. */
function noMemory(): SharedMapping & { readonly discarded: (readonly [number, number])[] } {
  const discarded: (readonly [number, number])[] = []
  return {
    path: '',
    size: SIZE,
    copyIn: () => {},
    copyOut: () => {},
    copyInLater: async () => {},
    view: (bytes) => new ArrayBuffer(bytes),
    copyOutLater: async () => {},
    discard: (offset, size) => void discarded.push([offset, size]),
    discardLater: async (offset, size) => void discarded.push([offset, size]),
    unmap: () => {},
    discarded,
  }
}

await t.test('parts never overlap, are aligned, and all comes back', async (t) => {
  assert(
    property(
      array(tuple(boolean(), integer({ min: 0, max: 300_000 })), { maxLength: 60 }),
      (steps) => {
        const arena = new Arena(noMemory())
        const parts: ArenaPart[] = []
        for (const [isFree, size] of steps) {
          if (isFree && parts.length > 0)
            arena.free(parts.splice(size % parts.length, 1)[0] ?? { offset: -1 })
          else {
            const part = arena.allocate(size)
            if (part === undefined) continue
            t.ok(
              part.size >= size &&
                part.offset % PAGE_BYTES === 0 &&
                part.offset + part.size <= SIZE,
            )
            t.notOk(
              parts.some(
                (p) => p.offset < part.offset + part.size && part.offset < p.offset + p.size,
              ),
            )
            parts.push(part)
          }
        }
        for (const part of parts) arena.free(part)
        t.ok(arena.isIdle)
        t.equal(arena.allocate(SIZE)?.offset, 0, 'the gaps are one again')
      },
    ),
    { numRuns: 50 },
  )
})

await t.test('what does not fit is no part, and what is not in use is not freed', async (t) => {
  const arena = new Arena(noMemory())
  t.equal(arena.allocate(SIZE + 1), undefined)
  t.throws(() => arena.free({ offset: 0 }), { message: /part 0 of an arena is not in use/ })
  t.throws(() => arena.write(SIZE - 1, new Uint8Array(2)), {
    message: /2 bytes at 1048575 are not in the arena/,
  })
  t.throws(() => arena.read(-1, 1), { message: /are not in the arena/ })
  t.throws(() => arena.read(0, SIZE + 1), { message: /are not in the arena/ })
})

await t.test('an idle arena gives back what it does not keep, once', async (t) => {
  const memory = noMemory()
  const arena = new Arena(memory)
  const part = arena.allocate(500_000)
  t.throws(() => arena.trim(0), { message: /an arena in use is not trimmed/ })
  const seen = arena.view(400_000, 10)
  arena.free(part ?? { offset: -1 })
  arena.trim(100_000)
  arena.trim(100_000)
  t.equal(seen.byteLength, 0, 'V8 counts no view of it any more')
  t.equal(arena.view(100_000, 10).byteLength, 10)
  t.same(memory.discarded, [[131_072, 393_216]])
})

await t.test('much memory is given back in parts, from the end', async (t) => {
  const memory = { ...noMemory(), size: 64 * 2 ** 20 }
  const arena = new Arena(memory)
  const part = arena.allocate(40 * 2 ** 20)
  arena.free(part ?? { offset: -1 })
  t.same([arena.trim(0), arena.trim(0), arena.trim(0)], [true, true, false])
  t.same(
    memory.discarded.map(([offset, size]) => [offset / 2 ** 20, size / 2 ** 20]),
    [
      [24, 16],
      [8, 16],
      [0, 8],
    ],
  )
})

await t.test(
  'a large part is given back in pieces before it is free, and the mapping stays for it',
  async (t) => {
    const memory = { ...noMemory(), size: 64 * 2 ** 20 }
    const events: string[] = []
    const arena = new Arena({
      ...memory,
      discardLater: async (offset, size) => {
        await nextTurn()
        events.push(`${offset / 2 ** 20} ${size / 2 ** 20}`)
      },
      unmap: () => void events.push('unmap'),
    })
    const part = arena.allocate(40 * 2 ** 20) ?? { offset: -1, size: 0 }
    const discarding = arena.discard(part, 0)
    t.equal(arena.isIdle, false)
    await Promise.all([arena.unmap(), discarding])
    t.same(events, ['0 16', '16 16', '32 8', 'unmap'])
    t.equal(arena.isIdle, true)
  },
)

const memory = openSharedMemory()
const skip = typeof memory === 'string' && memory

await t.test('shared memory holds what is written until it is discarded', { skip }, async (t) => {
  if (typeof memory === 'string') return
  const mapping = memory.create(SIZE)
  const read = (offset: number, size: number): Uint8Array => {
    const target = new Uint8Array(size)
    mapping.copyOut(offset, target)
    return target
  }
  mapping.copyIn(70_000, Uint8Array.from([1, 2, 3]))
  t.same(read(70_000, 4), Uint8Array.from([1, 2, 3, 0]))
  mapping.discard(65_536, 65_536)
  t.same(read(70_000, 3), new Uint8Array(3))
  mapping.unmap()
  t.throws(() => memory.create(2 ** 60), { message: /failed: errno/ }, 'more than there can be')
})
