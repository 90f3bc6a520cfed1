import { randomBytes } from 'node:crypto'
import { ServeError } from '@tutti/errors'
import { inferObject, type TestServer } from '@tutti/grpc/testing'
import { type OpenCudaMemory, SharedRegions } from '@tutti/shared-memory'
import t from 'tap'
import { at, floats, openShared, restAt } from '../testing/open-shared.ts'

const MIB = 2 ** 20
const HANDLE = randomBytes(64)
const CUDA = { name: 'g', handle: HANDLE, deviceId: 1, byteSize: 64 }
const LOST = new ServeError('DEVICE_UNAVAILABLE', 'cuMemcpyDtoH says 100', { code: 'INTERNAL' })

/** A GPU with one allocation. */
function pretendGpu(sizeBytes = 128) {
  const gpu = { bytes: Buffer.alloc(sizeBytes), isLost: false, opened: 0, largest: 0 }
  const copy = (from: Uint8Array, to: Uint8Array, begin: number): void => {
    if (gpu.isLost) throw LOST
    gpu.largest = Math.max(gpu.largest, from.byteLength)
    to.set(from, begin)
  }
  const open: OpenCudaMemory = async (handle, deviceId) => {
    if (gpu.isLost) throw LOST
    t.same([Buffer.from(handle), deviceId], [HANDLE, 1])
    gpu.opened += 1
    return {
      byteSize: sizeBytes,
      read: (begin, bytes) => copy(gpu.bytes.subarray(begin, begin + bytes.byteLength), bytes, 0),
      write: (begin, bytes) => copy(bytes, gpu.bytes, begin),
      close: () => {
        if (gpu.isLost) throw LOST
        gpu.opened -= 1
      },
    }
  }
  return { gpu, open }
}

/** 8 MiB of a GPU as the region `g`. */
async function openLarge() {
  const { gpu, open } = pretendGpu(8 * MIB)
  gpu.bytes = randomBytes(8 * MIB)
  const regions = new SharedRegions(open)
  await regions.registerCuda({ ...CUDA, byteSize: 8 * MIB })
  const place = { region: 'g', offset: 0, byteSize: 8 * MIB }
  return { gpu, regions, region: regions.find('g'), place }
}

async function rest(url: string, body?: object): Promise<readonly [number, unknown]> {
  const sent = body && { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(url, sent)
  const text = await answer.text()
  return [answer.status, text === '' ? '' : JSON.parse(text)]
}

type Action = 'Register' | 'Status' | 'Unregister'

function grpc({ client }: TestServer, action: Action, request: object): Promise<object> {
  const { objects } = client
  const call = objects[`CudaSharedMemory${action}`] as (
    request: object,
    done: (error: Error | null, answer: object) => void,
  ) => unknown
  return new Promise((resolve, reject) => {
    call.call(objects, request, (error, answer) => (error ? reject(error) : resolve(answer)))
  })
}

await t.test('memory of a GPU is a region of both protocols', async (t) => {
  const { gpu, open } = pretendGpu()
  const { served, url } = await openShared(t, { m: {} }, 64, open)
  const cuda = `${url}/cudasharedmemory`
  const body = { raw_handle: { b64: HANDLE.toString('base64') }, device_id: 1, byte_size: 64 }
  t.same(await rest(`${cuda}/region/g/register`, body), [200, ''])
  const message = { name: 'h', raw_handle: HANDLE, device_id: '1', byte_size: '128' }
  await grpc(served, 'Register', message)
  const status = { name: 'g', device_id: 1, byte_size: 64 }
  t.same(await rest(`${cuda}/region/g/status`), [200, [status]])
  t.same(await rest(`${cuda}/status`), [200, [status, { ...status, name: 'h', byte_size: 128 }]])
  const h = { name: 'h', device_id: '1', byte_size: '128' }
  t.same(await grpc(served, 'Status', { name: 'h' }), { regions: { h } })
  const g = { name: 'g', device_id: '1', byte_size: '64' }
  t.same(await grpc(served, 'Status', {}), { regions: { g, h } })

  gpu.bytes.set(floats(5, 6, 7, 8))
  const input = { name: 'x', datatype: 'FP32', shape: [4] }
  const placed = {
    inputs: [{ ...input, parameters: restAt(0, 16, 'g') }],
    outputs: [{ name: 'x', parameters: restAt(16, 16, 'g') }],
  }
  t.equal((await rest(`${url}/models/m/infer`, placed))[0], 200)
  t.same(gpu.bytes.subarray(16, 32), floats(5, 6, 7, 8))
  const outputs = [{ name: 'x', parameters: at(112, 16, 'h') }]
  await inferObject(served, { inputs: [{ ...input, parameters: at(16, 16, 'h') }], outputs })
  t.same(gpu.bytes.subarray(112), floats(5, 6, 7, 8))
  await t.rejects(inferObject(served, { inputs: [{ ...input, parameters: at(60, 16, 'g') }] }), {
    message: "Invalid offset + byte size for shared memory region: 'g'",
  })

  gpu.isLost = true
  await t.rejects(inferObject(served, { inputs: [{ ...input, parameters: at(0, 16, 'g') }] }), {
    code: 'INTERNAL',
    message: 'cuMemcpyDtoH says 100',
  })
  const [code, answer] = await rest(`${url}/models/m/infer`, {
    ...placed,
    inputs: [{ ...input, data: [1, 2, 3, 4] }],
  })
  t.same([code, answer], [500, { error: 'cuMemcpyDtoH says 100' }])
  t.equal(
    (await rest(`${url}/models/m/infer`, { inputs: [{ ...input, data: [1, 2, 3, 4] }] }))[0],
    200,
  )
  gpu.isLost = false

  t.same(await rest(`${cuda}/region/r/unregister`, {}), [200, ''], 'of another kind')
  t.equal((await rest(`${url}/systemsharedmemory/region/r/status`))[0], 200)
  t.same(await rest(`${url}/systemsharedmemory/unregister`, {}), [200, ''])
  t.equal(gpu.opened, 2)
  await grpc(served, 'Unregister', { name: 'g' })
  t.equal(gpu.opened, 1)
  t.same(await rest(`${cuda}/unregister`, {}), [200, ''])
  t.equal(gpu.opened, 0)
})

await t.test('what cannot be registered is refused, and nothing stays open', async (t) => {
  const { gpu, open } = pretendGpu()
  const regions = new SharedRegions(open)
  const invalid = { code: 'INVALID_ARGUMENT', message: /^failed to register shared memory region/ }
  const rows = [
    { handle: HANDLE.subarray(1) },
    { deviceId: -1 },
    { deviceId: 2 ** 31 },
    { byteSize: 129 },
  ]
  for (const row of rows) await t.rejects(regions.registerCuda({ ...CUDA, ...row }), invalid)
  await t.rejects(regions.registerCuda({ ...CUDA, name: 'n'.repeat(4097) }), {
    code: 'RESOURCE_EXHAUSTED',
  })
  t.equal(gpu.opened, 0)
  const both = await Promise.allSettled([regions.registerCuda(CUDA), regions.registerCuda(CUDA)])
  t.match(both, [{ status: 'fulfilled' }, { status: 'rejected' }])
  t.match(both[1], { reason: { code: 'ALREADY_EXISTS' } })
  t.throws(() => regions.register({ name: 'g', key: 'k', offset: 0, byteSize: 1 }), {
    code: 'ALREADY_EXISTS',
  })
  t.equal(gpu.opened, 1)
  regions.find('g').uses += 1
  t.throws(() => regions.unregister('', 'cuda'), {
    code: 'INTERNAL',
    message: 'Failed to unregister the following cuda shared memory regions: g ,',
  })
  regions.unregister('')
  regions.find('g').uses -= 1
  gpu.isLost = true
  await t.rejects(regions.registerCuda({ ...CUDA, name: 'h' }), {
    code: 'INVALID_ARGUMENT',
    message: 'failed to register shared memory region: invalid args: cuMemcpyDtoH says 100',
  })
  regions.unregister('g', 'cuda')
  t.same(regions.status('', 'cuda'), [], 'also of a GPU that is lost')
})

await t.test('much is copied in pieces, while others go on', async (t) => {
  const { gpu, region, place } = await openLarge()
  const { signal } = new AbortController()
  let turns = 0
  const count = (): void => {
    turns += 1
    turning = setImmediate(count)
  }
  let turning = setImmediate(count)
  t.teardown(() => clearImmediate(turning))
  const got = region.reserve(place)
  await region.fill(got, place, signal)
  t.ok(got.equals(gpu.bytes))
  const written = randomBytes(4 * MIB + 1)
  await region.store(written, { ...place, offset: 3 * MIB }, signal)
  const rest = [got.subarray(0, 3 * MIB), written, got.subarray(7 * MIB + 1)]
  t.ok(gpu.bytes.equals(Buffer.concat(rest)))
  t.equal(gpu.largest, MIB)
  t.ok(turns >= 12, `${turns} turns for 13 pieces`)
})

await t.test('a copy ends that is given up, or whose region is closed', async (t) => {
  const { gpu, regions, region, place } = await openLarge()
  const before = Buffer.from(gpu.bytes)
  const given = new AbortController()
  const stored = region.store(randomBytes(MIB), place, given.signal)
  given.abort(new ServeError('CANCELLED', 'given up'))
  await t.rejects(stored, { message: 'given up' })
  t.ok(gpu.bytes.equals(before), 'nothing is written')
  const { signal } = new AbortController()
  const filling = region.fill(region.reserve(place), place, signal)
  regions.close()
  await t.rejects(filling, { message: "Unable to find shared memory region: 'g'" })
  t.equal(gpu.opened, 0)
})
