// needs: python
import { readFile } from 'node:fs/promises'
import { env } from 'node:process'
import { LentMemory } from '@tutti/backends'
import { countingMemory, createPythonEngine } from '@tutti/backends/testing'
import { parseFlags } from '@tutti/chassis'
import { until } from '@tutti/chassis/testing'
import { openTestServer } from '@tutti/grpc/testing'
import type { OutgoingRequest } from '@tutti/protocol'
import { PoisonedMemory } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { openServedModels } from '../testing/open-served-models.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

const PYTHON = env['TUTTI_TEST_PYTHON']
const skip = PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set'
const SIZE = 300_000
const MAX_BYTES = 2 ** 26
/** Numbers that tell a model, in its first input, what to do. */
const [WRITE, KILL] = [201, 202]

/** Adds 1 to each input, whose numbers are below 200: others are none that a client sent. */
const CODE = `import os, signal, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            outputs = []
            for name, output in (("x0", "y0"), ("x1", "y1")):
                x = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
                if x.size > 0 and x[0] == ${KILL}:
                    os.kill(os.getpid(), signal.SIGKILL)
                if x.size > 0 and x[0] == ${WRITE}:
                    x[:] = 7
                if x[1:].max(initial=0) >= 200:
                    raise pb_utils.TritonModelException("poisoned")
                outputs.append(pb_utils.Tensor(output, x + 1))
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
`
const port = (name: string): string => `{ name: "${name}" data_type: TYPE_UINT8 dims: [ -1 ] }`
const IO = `input [ ${port('x0')}, ${port('x1')} ] output [ ${port('y0')}, ${port('y1')} ]`
const CONFIG = `backend: "python" ${IO} instance_group { count: 2 kind: KIND_CPU }`
const step = (x: string, y: string): string =>
  `step { model_name: "plus" model_version: -1
    input_map [ { key: "x0" value: "${x}0" }, { key: "x1" value: "${x}1" } ]
    output_map [ { key: "y0" value: "${y}0" }, { key: "y1" value: "${y}1" } ] }`
const ENSEMBLE = `platform: "ensemble" ${IO} ensemble_scheduling { ${step('x', 'm')} ${step('m', 'y')} }`

/** Python models behind a real gRPC server, as `tutti serve` has them. Memory that was given back is overwritten. */
async function serve(t: Test) {
  const counted = countingMemory()
  const path = t.testdir({
    plus: { 'config.pbtxt': CONFIG, 1: { 'model.py': CODE } },
    plus_two: { 'config.pbtxt': ENSEMBLE, 1: {} },
  })
  const { values: flags } = parseFlags(SERVE_FLAGS, [`--model-repository=${path}`])
  const engine = createPythonEngine({
    interpreter: PYTHON ?? '',
    settings: { restartFirstMs: 0, restartLongestMs: 0 },
    memory: counted.memory,
  })
  const server = await openServedModels({ flags, engines: [engine] })
  const lent = new LentMemory(counted.memory, MAX_BYTES)
  const memory = new PoisonedMemory((bytes) => lent.take(bytes))
  const { backend } = server
  t.teardown(async () => {
    await server.close()
    await lent.close()
  })
  const served = await openTestServer(t, {}, { backend, memory })
  const settle = () =>
    until('all is given back', () => memory.open === 0 && served.admission.bytes === 0)
  return { ...counted, ...served, memory, settle }
}

function ask(modelName: string, sizes: readonly number[], first = 0): OutgoingRequest {
  const inputs = sizes.map((size, i) => {
    const data = new Uint8Array(size).map((_, at) => (at * 3 + i) % 150)
    if (size > 0) data[0] = first
    return { name: `x${i}`, datatype: 'UINT8' as const, shape: [size], data }
  })
  return { modelName, inputs }
}

/** Whether all numbers of the outputs are those of the inputs and `added`. */
function isRight(
  outputs: readonly { readonly name: string; readonly data: Uint8Array }[],
  { inputs }: OutgoingRequest,
  added: number,
): boolean {
  return inputs.every(({ name, data }) => {
    const output = outputs.find((one) => one.name === name.replace('x', 'y'))
    return output?.data.every((byte, at) => byte === (data[at] ?? 0) + added) === true
  })
}

await t.test('a tensor is copied once in, once out, and not between', { skip }, async (t) => {
  const { client, memory, copied, reset, settle } = await serve(t)
  for (const [model, added] of [
    ['plus', 1],
    ['plus_two', 2],
  ] as const) {
    const asked = ask(model, [SIZE, 2 * SIZE])
    // A process copies what it does not see yet.
    for (let i = 0; i < 12; i += 1) await Promise.all([client.infer(asked), client.infer(asked)])
    await settle()
    reset()
    memory.taken = 0
    const { outputs } = await client.infer(asked)
    t.ok(isRight(outputs, asked, added))
    t.equal(memory.taken, 3 * SIZE, 'in: from the socket to where the process reads it')
    t.same(copied, { in: 0, out: 0 }, 'and nowhere else; out: from where it was made to the socket')
  }
})

const size = fc.oneof(fc.nat({ max: 300 }), fc.integer({ min: 60_000, max: 400_000 }))
const one = fc.record({
  model: fc.constantFrom('plus', 'plus_two'),
  sizes: fc.tuple(size, size),
  first: fc.constantFrom(0, 0, 0, WRITE, KILL),
  cancelAfterMs: fc.option(fc.nat({ max: 20 })),
})

await t.test(
  'bytes are right and all comes back, whatever processes and clients do',
  { skip },
  async (t) => {
    const { client, settle, copied } = await serve(t)
    let answered = 0
    await fc.assert(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 8 }), async (all) => {
        const results = all.map(async ({ model, sizes, first, cancelAfterMs }) => {
          const asked = ask(model, sizes, first)
          const signal =
            cancelAfterMs === null ? undefined : { signal: AbortSignal.timeout(cancelAfterMs) }
          try {
            const { outputs } = await client.infer(asked, signal)
            answered += 1
            // A model that wrote into its own input saw only what it wrote.
            return first === WRITE || isRight(outputs, asked, model === 'plus' ? 1 : 2)
          } catch (error) {
            return !String(error).includes('poisoned')
          }
        })
        const areRight = (await Promise.all(results)).every((right) => right)
        await settle()
        return areRight
      }),
      { numRuns: 40 },
    )
    t.ok(answered > 0)
    t.comment(`${answered} answers, ${copied.in} bytes copied`)
    await until('it serves again', async () => {
      const asked = ask('plus_two', [SIZE, 10])
      const { outputs } = await client.infer(asked).catch(() => ({ outputs: [] }))
      return isRight(outputs, asked, 2)
    })
    const maps = await readFile('/proc/self/maps', 'utf8')
    t.equal(maps.split('tutti-arena').length - 1, 3, 'of two instances and of the server')
  },
)
