import { randomBytes } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { ServeError } from '@tutti/errors'
import { MAX_REGIONS, SharedRegions } from '@tutti/shared-memory'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { PlacedInputs } from './placed-inputs.ts'

/** Makes an object of shared memory. @returns its key. */
function createObject(t: Test, bytes: Uint8Array): string {
  const key = `tutti_test_${randomBytes(6).toString('hex')}`
  writeFileSync(`/dev/shm/${key}`, bytes)
  t.teardown(() => rmSync(`/dev/shm/${key}`, { force: true, recursive: true }))
  return key
}

function openRegions(t: Test): SharedRegions {
  const regions = new SharedRegions()
  t.teardown(() => regions.close())
  return regions
}

/** Objects of shared memory that this process has open. */
function openObjects(): number {
  return readdirSync('/proc/self/fd', { withFileTypes: true }).length
}

await t.test('a region is registered once, listed and forgotten', (t) => {
  const regions = openRegions(t)
  const key = createObject(t, Buffer.alloc(64))
  const r = { name: 'r', key: `/${key}`, offset: 3, byteSize: 16 }
  regions.register(r)
  regions.register({ ...r, name: 's', key })
  t.same(regions.status(''), [r, { ...r, name: 's', key }])
  t.same(regions.status('r'), [r])
  t.throws(() => regions.register(r), {
    code: 'ALREADY_EXISTS',
    message: "shared memory region 'r' already in manager",
  })
  regions.unregister('r')
  regions.unregister('r')
  t.throws(() => regions.status('r'), {
    code: 'NOT_FOUND',
    message: "Unable to find system shared memory region: 'r'",
  })
  t.throws(() => regions.find('r'), { message: "Unable to find shared memory region: 'r'" })
  regions.unregister('')
  t.same(regions.status(''), [])
  t.end()
})

await t.test('what is no plain object of that folder is not opened', (t) => {
  const regions = openRegions(t)
  const before = openObjects()
  const key = createObject(t, Buffer.alloc(64))
  const link = createObject(t, Buffer.alloc(0))
  unlinkSync(`/dev/shm/${link}`)
  symlinkSync(`/dev/shm/${key}`, `/dev/shm/${link}`)
  const folder = createObject(t, Buffer.alloc(0))
  unlinkSync(`/dev/shm/${folder}`)
  mkdirSync(`/dev/shm/${folder}`)
  const keys = ['', '/', '.', '..', '/../etc/passwd', '../etc/passwd', `${folder}/x`, link, folder]
  const more = ['absent', 'a\0b', 'k'.repeat(300), 'triton_python_backend_shm_region_1']
  for (const one of [...keys, ...more]) {
    t.throws(
      () => regions.register({ name: 'r', key: one, offset: 0, byteSize: 1 }),
      { code: 'INTERNAL', message: `Unable to open shared memory region: '${one}'` },
      one,
    )
  }
  t.equal(openObjects(), before, 'no descriptor is left')
  t.end()
})

await t.test('a region lies within its object', (t) => {
  const regions = openRegions(t)
  const before = openObjects()
  const key = createObject(t, Buffer.alloc(64))
  const rows = [
    [0, 65, 'invalid args'],
    [64, 1, 'invalid args'],
    [100, 1, 'invalid args'],
    [2 ** 64, 2 ** 64, 'invalid args'],
    [0, 0, 'unable to process address spaceInvalid argument'],
  ] as const
  for (const [offset, byteSize, problem] of rows) {
    t.throws(() => regions.register({ name: 'r', key, offset, byteSize }), {
      code: 'INVALID_ARGUMENT',
      message: `failed to register shared memory region 'r': ${problem}`,
    })
  }
  const long = 'n'.repeat(4097)
  for (const names of [
    { name: long, key },
    { name: 'r', key: long },
  ]) {
    t.throws(() => regions.register({ ...names, offset: 0, byteSize: 1 }), {
      code: 'RESOURCE_EXHAUSTED',
    })
  }
  t.equal(openObjects(), before)
  t.end()
})

await t.test('there is a bound of regions', (t) => {
  const regions = openRegions(t)
  const key = createObject(t, Buffer.alloc(8))
  const register = (name: string): void => regions.register({ name, key, offset: 0, byteSize: 8 })
  for (let index = 0; index < MAX_REGIONS; index++) register(String(index))
  t.throws(() => register('more'), { code: 'RESOURCE_EXHAUSTED' })
  regions.unregister('0')
  register('more')
  t.end()
})

await t.test('a region that is to be written is not forgotten', (t) => {
  const regions = openRegions(t)
  const key = createObject(t, Buffer.alloc(8))
  for (const name of ['a', 'b']) regions.register({ name, key, offset: 0, byteSize: 8 })
  const region = regions.find('a')
  region.uses += 1
  t.throws(() => regions.unregister('a'), {
    code: 'INTERNAL',
    message: "Cannot unregister shared memory region 'a', it is currently in use.",
  })
  t.throws(() => regions.unregister(''), {
    code: 'INTERNAL',
    message: 'Failed to unregister the following system shared memory regions: a ,',
  })
  t.equal(regions.status('').length, 1, 'the others are')
  region.uses -= 1
  regions.unregister('a')
  const place = { region: 'a', offset: 0, byteSize: 8 }
  t.throws(() => region.write(place, new Uint8Array(8)), { code: 'NOT_FOUND' })
  t.throws(() => region.read(place), { code: 'NOT_FOUND' })
  t.end()
})

await t.test('an object that its client shortens is an error, and does not grow', (t) => {
  const regions = openRegions(t)
  const key = createObject(t, Buffer.alloc(64, 1))
  regions.register({ name: 'r', key, offset: 8, byteSize: 56 })
  const region = regions.find('r')
  const place = { region: 'r', offset: 16, byteSize: 16 }
  truncateSync(`/dev/shm/${key}`, 32)
  const shortened = { message: "Invalid offset + byte size for shared memory region: 'r'" }
  t.throws(() => region.read(place), shortened)
  t.throws(() => region.write(place, new Uint8Array(16)), shortened)
  unlinkSync(`/dev/shm/${key}`)
  t.same(
    [...region.read({ ...place, offset: 0 })],
    Array(16).fill(1),
    'unlinked, it is still there',
  )
  t.end()
})

await t.test('nothing is read or written outside of a region', (t) => {
  const regions = openRegions(t)
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
  const key = createObject(t, bytes)
  const count = fc.oneof(fc.nat(300), fc.constantFrom(2 ** 31, 2 ** 53, 2 ** 63, 2 ** 64 - 1))
  const before = openObjects()
  const input = fc.record({ begin: count, size: count, offset: count, byteSize: count })
  fc.assert(
    fc.property(input, ({ begin, size, offset, byteSize }) => {
      const place = { region: 'r', offset, byteSize }
      try {
        regions.register({ name: 'r', key, offset: begin, byteSize: size })
        const region = regions.find('r')
        const read = region.read(place)
        t.ok(offset + byteSize <= size && byteSize > 0)
        t.ok(bytes.subarray(begin + offset, begin + offset + byteSize).equals(read))
        // Bytes that are there already: what is written elsewhere shows in a later read.
        region.write(place, read)
      } catch (error) {
        if (!(error instanceof ServeError) || error.code !== 'INVALID_ARGUMENT') throw error
        t.ok(size === 0 || begin + size > 256 || byteSize === 0 || offset + byteSize > size)
      }
      regions.unregister('')
    }),
    { numRuns: 300 },
  )
  t.equal(openObjects(), before, 'no descriptor is left')
  t.end()
})

const MIB = 2 ** 20
const GOES_ON = new AbortController().signal

/** Aborts when it is asked for the nth time: before the nth piece. @param act - happens then too. */
function abortsAt(nth: number, act = (): void => undefined): AbortSignal {
  const controller = new AbortController()
  let asked = 0
  Object.defineProperty(controller.signal, 'aborted', {
    get: () => {
      asked += 1
      if (asked === nth) act()
      return asked >= nth
    },
  })
  controller.abort(new ServeError('CANCELLED', 'given up'))
  return controller.signal
}

/** 8 MiB that a client shares as the region `r`. */
function openLarge(t: Test) {
  const bytes = randomBytes(8 * MIB)
  const key = createObject(t, bytes)
  const regions = openRegions(t)
  regions.register({ name: 'r', key, offset: 0, byteSize: bytes.byteLength })
  const place = { region: 'r', offset: 0, byteSize: bytes.byteLength }
  const path = `/dev/shm/${key}`
  return { bytes, regions, region: regions.find('r'), place, path }
}

await t.test('the loop goes on while much is copied', async (t) => {
  const { bytes, region, place, path } = openLarge(t)
  let turns = 0
  const count = (): void => {
    turns += 1
    turning = setImmediate(count)
  }
  let turning = setImmediate(count)
  t.teardown(() => clearImmediate(turning))
  const got = region.reserve(place)
  await region.fill(got, place, GOES_ON)
  t.ok(got.equals(bytes))
  t.ok(turns >= 4, `${turns} turns for 8 pieces`)
  turns = 0
  const written = randomBytes(8 * MIB)
  await region.store(written, place, GOES_ON)
  t.ok(readFileSync(path).equals(written))
  t.ok(turns >= 4, `${turns} turns for 8 pieces`)
})

await t.test('a copy that is given up ends, and writes nothing more', async (t) => {
  const { bytes, region, place, path } = openLarge(t)
  const given = { code: 'CANCELLED', message: 'given up' }
  const written = randomBytes(8 * MIB)
  await t.rejects(region.store(written, place, abortsAt(1)), given)
  t.ok(readFileSync(path).equals(bytes), 'nothing')
  await t.rejects(region.store(written, place, abortsAt(3)), given)
  const half = Buffer.concat([written.subarray(0, 2 * MIB), bytes.subarray(2 * MIB)])
  t.ok(readFileSync(path).equals(half), 'no third piece')
  await t.rejects(region.fill(region.reserve(place), place, abortsAt(3)), given)
})

await t.test('an object may be shortened and a region closed while it is copied', async (t) => {
  const before = openObjects()
  const { regions, region, place, path } = openLarge(t)
  const inputs = new PlacedInputs({ backend: { regions }, charge: () => undefined })
  inputs.read(place)
  t.ok(inputs.isLate)
  const copied = inputs.copy(GOES_ON)
  t.throws(() => regions.unregister('r'), { message: /it is currently in use/ })
  await copied
  const shortened = { message: "Invalid offset + byte size for shared memory region: 'r'" }
  const got = region.reserve(place)
  const cut = new AbortController().signal
  Object.defineProperty(cut, 'aborted', { get: () => truncateSync(path, 3 * MIB + 5) })
  await t.rejects(region.fill(got, place, cut), shortened)
  await t.rejects(region.store(got, place, GOES_ON), shortened)
  t.equal(readFileSync(path).byteLength, 3 * MIB + 5, 'it has not grown')
  t.throws(() => region.reserve(place), shortened)
  const unknown = { message: "Unable to find shared memory region: 'r'" }
  const copying = t.rejects(region.fill(got, place, GOES_ON), unknown)
  regions.close()
  t.equal(openObjects(), before + 1, 'not closed under the thread that copies')
  await copying
  t.equal(openObjects(), before, 'no descriptor is left')
})

await t.test('large places are copied as they are, and nothing beside them', async (t) => {
  const { bytes, regions, region, path } = openLarge(t)
  let expected: Buffer = bytes
  const inputs = new PlacedInputs({ backend: { regions }, charge: () => undefined })
  const input = fc.record({ offset: fc.nat(9 * MIB), byteSize: fc.nat(9 * MIB) })
  await fc.assert(
    fc.asyncProperty(input, async ({ offset, byteSize }) => {
      const place = { region: 'r', offset, byteSize }
      if (byteSize === 0 || offset + byteSize > 8 * MIB) {
        t.throws(() => inputs.read(place), { code: 'INVALID_ARGUMENT' })
        t.throws(() => region.reserve(place), { code: 'INVALID_ARGUMENT' })
        return
      }
      const end = offset + byteSize
      const got = region.reserve(place)
      await region.fill(got, place, GOES_ON)
      t.ok(got.equals(expected.subarray(offset, end)))
      const written = randomBytes(byteSize)
      await region.store(written, place, GOES_ON)
      expected = Buffer.concat([expected.subarray(0, offset), written, expected.subarray(end)])
      t.ok(readFileSync(path).equals(expected))
    }),
    { numRuns: 30 },
  )
})
