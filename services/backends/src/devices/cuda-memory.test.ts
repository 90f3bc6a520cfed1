import { randomBytes } from 'node:crypto'
import t from 'tap'
import { CudaImports } from './cuda-memory.ts'
import { withoutCompiler } from './testing/compile-library.ts'
import { PRETEND_BYTES, pretendCuda, pretendHandle } from './testing/pretend-cuda.ts'

/** Opens an allocation that is there. */
async function openAllocation(cuda: CudaImports, allocation: number) {
  const memory = await cuda.open(pretendHandle(allocation), allocation % 2)
  if (memory === undefined) throw new Error('there is no driver')
  return memory
}

await t.test('without a driver nothing is opened', async (t) => {
  for (const library of ['libcuda-missing.so.1', 'libc.so.6']) {
    t.equal(await new CudaImports(library).open(pretendHandle(0), 0), undefined)
  }
})

await t.test('memory of several GPUs is read and written', { skip: withoutCompiler }, async (t) => {
  const pretended = await pretendCuda(t)
  const cuda = new CudaImports(pretended.path)
  const memories = await Promise.all([0, 1, 2].map((one) => openAllocation(cuda, one)))
  t.same(
    memories.map(({ byteSize }) => byteSize),
    Array(3).fill(PRETEND_BYTES),
  )
  for (const [allocation, memory] of memories.entries()) {
    const written = randomBytes(1000)
    memory.write(PRETEND_BYTES - 1000, written)
    t.ok(pretended.look(allocation).subarray(-1000).equals(written), 'at once')
    memory.write(3, new Uint8Array(new SharedArrayBuffer(4)).fill(allocation + 1))
    t.same([...pretended.look(allocation).subarray(2, 8)], [0, ...Array(4).fill(allocation + 1), 0])
    const read = Buffer.alloc(1000)
    // Another thread or engine may have made its own context current meanwhile: that is of no matter.
    memory.read(PRETEND_BYTES - 1000, read.subarray(0, 500))
    memory.read(PRETEND_BYTES - 500, read.subarray(500))
    t.ok(read.equals(written))
    t.throws(() => memory.read(PRETEND_BYTES - 999, read), { message: /^bug/ })
  }
  const again = await openAllocation(cuda, 0)
  t.equal(pretended.opened(), 4)
  for (const memory of [...memories, again]) memory.close()
  t.equal(pretended.opened(), 0)
})

await t.test('what CUDA refuses has its words', { skip: withoutCompiler }, async (t) => {
  const pretended = await pretendCuda(t)
  const cuda = new CudaImports(pretended.path)
  const rows = [
    [pretendHandle(0), 2, 'cuDeviceGet says 101 (invalid device ordinal)'],
    [Buffer.alloc(64), 0, 'cuIpcOpenMemHandle says 1 (invalid argument)'],
    [pretendHandle(1), 0, 'cuIpcOpenMemHandle says 201 (invalid device context)'],
    [pretendHandle(3), 1, 'cuMemGetAddressRange says 1 (invalid argument)'],
  ] as const
  for (const [handle, device, message] of rows) {
    await t.rejects(cuda.open(handle, device), { reason: 'DEVICE_UNAVAILABLE', message })
  }
  t.equal(pretended.opened(), 0, 'and leaves nothing open')
  const memory = await openAllocation(cuda, 0)
  pretended.lose()
  const lost = { reason: 'DEVICE_UNAVAILABLE', code: 'INTERNAL', message: /no CUDA-capable device/ }
  t.throws(() => memory.read(0, Buffer.alloc(4)), lost)
  t.throws(() => memory.write(0, Buffer.alloc(4)), lost)
  t.throws(() => memory.close(), lost)
})
