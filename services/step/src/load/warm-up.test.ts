import { ServeError } from '@tutti/errors'
import { compileRequestCheck, type ModelWarmup, type WarmupInput } from '@tutti/model-config'
import { DATATYPES, type Datatype } from '@tutti/tensor'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { scriptedConfig } from '../testing/scheduler-rig.ts'
import { ScriptedModel } from '../testing/scripted-engine.ts'
import { warmUp } from './warm-up.ts'
import { warmUpInput } from './warm-up-data.ts'

const X: WarmupInput = { data_type: 'TYPE_FP32', dims: [2], zero_data: true }

function sample(rest: Partial<ModelWarmup> = {}): ModelWarmup {
  return { name: 's', batch_size: 1, count: 0, inputs: { x: X }, ...rest }
}

async function run(
  t: Test,
  samples: readonly ModelWarmup[],
  o: {
    readonly instances?: number
    readonly maxBatchSize?: number
    readonly model?: ScriptedModel
    /** Takes the inputs that are left out, by samples. */
    readonly leftOut?: string[]
  } = {},
): Promise<ScriptedModel> {
  const config = scriptedConfig({
    model_warmup: samples,
    max_batch_size: o.maxBatchSize ?? 4,
  })
  const model = o.model ?? new ScriptedModel()
  model.isImmediate = true
  await warmUp(model, {
    config,
    instances: o.instances ?? 1,
    check: compileRequestCheck(config),
    modelDirectory: t.testdir({
      warmup: { x: Buffer.from(new Float32Array([1, 2, 3]).buffer), short: 'abc' },
      secret: 'secret',
    }),
    report: () => {},
    random: () => 0.5,
    warnOfInputs: (name, inputs) => o.leftOut?.push(`${name}: ${inputs.join(' ')}`),
  })
  return model
}

await t.test('every instance runs every sample as often as it says', async (t) => {
  const model = await run(t, [sample({ count: 2 }), sample({ name: 'u' })], { instances: 3 })
  t.same(
    [0, 1, 2].map((i) => model.executions.filter(({ instance }) => instance === i).length),
    [3, 3, 3],
  )
  t.same(model.at(0).requests[0]?.inputs[0]?.shape, [1, 2])
})

await t.test(
  'a batch is that many requests of one item, in executions that the model allows',
  async (t) => {
    const cases: readonly (readonly [number, number, readonly number[]])[] = [
      [3, 4, [3]],
      [9, 4, [4, 4, 1]],
      [2, 0, [1, 1]],
      [0, 4, []],
    ]
    for (const [size, maxBatchSize, want] of cases) {
      const model = await run(t, [sample({ batch_size: size })], { maxBatchSize })
      t.same(
        model.executions.map(({ requests }) => requests.length),
        want,
      )
    }
  },
)

await t.test('a failing sample fails the load with the text of Triton', async (t) => {
  const file = (name: string): ModelWarmup =>
    sample({ inputs: { x: { data_type: 'TYPE_FP32', dims: [2], input_data_file: name } } })
  const cases: readonly (readonly [ModelWarmup, string])[] = [
    [
      sample({ inputs: { x: { ...X, dims: [-1] } } }),
      "warmup setting expects all variable-size dimensions are specified for input 'x'",
    ],
    [
      sample({ inputs: { x: { data_type: 'TYPE_FP32', dims: [2] } } }),
      "warmup setting expects input 'x' to have input_data_type set",
    ],
    [
      sample({ inputs: { x: { ...X, data_type: 'TYPE_INVALID' } } }),
      "warmup setting expects input 'x' to have 'data_type' set",
    ],
    [file('short'), 'warmup setting expects 8 bytes, but the data provided from short is 3 bytes'],
    [file('../secret'), "warmup file '../secret' is outside the model's warmup directory"],
    [file('absent'), 'ENOENT'],
    [sample({ inputs: {} }), 'expected 1 inputs but got 0 inputs'],
    [sample({ inputs: { x: { ...X, data_type: 'TYPE_INT8' } } }), "data-type is 'INT8'"],
  ]
  for (const [failing, text] of cases) {
    const error = await run(t, [sample(), failing]).then(
      () => undefined,
      (thrown: unknown) => ServeError.from(thrown),
    )
    t.equal(error?.reason, 'MODEL_WARMUP_FAILED', text)
    t.match(error?.message, text)
    t.match(error?.message, / \(warm-up sample 's'\)$/)
  }
})

await t.test('an error of the model fails the load, once all instances have ended', async (t) => {
  const model = new ScriptedModel()
  const original = model.execute.bind(model)
  model.execute = (batch, o) => {
    if (o.instance === 1) batch[0]?.sink.fail(new ServeError('ENGINE_FAILED', 'no kernel'), 'maybe')
    return original(batch, o)
  }
  await t.rejects(run(t, [sample()], { model, instances: 3 }), {
    reason: 'MODEL_WARMUP_FAILED',
    code: 'INVALID_ARGUMENT',
    message: "failed to run warmup sample 's': no kernel; ",
  })
  t.equal(model.busy.size, 0)
})

await t.test('inputs that the model does not have are left out, with a warning', async (t) => {
  const leftOut: string[] = []
  const model = await run(t, [sample({ inputs: { x: X, z: X } })], { leftOut })
  t.same(
    model.at(0).requests[0]?.inputs.map(({ name }) => name),
    ['x'],
  )
  t.same(leftOut, ['s: z'])
})

await t.test('data from a file is used as it stands', async (t) => {
  const input: WarmupInput = { data_type: 'TYPE_FP32', dims: [2], input_data_file: 'x' }
  const model = await run(t, [sample({ inputs: { x: input } })])
  const data = model.at(0).requests[0]?.inputs[0]?.data ?? new Uint8Array()
  t.same([...new Float32Array(data.slice().buffer)], [1, 2])
})

/** Reads the numbers that a random tensor of this datatype may hold. */
const READERS: Partial<Record<Datatype, (view: DataView, at: number) => number>> = {
  BOOL: (view, at) => view.getUint8(at),
  FP32: (view, at) => view.getFloat32(at, true),
  FP64: (view, at) => view.getFloat64(at, true),
}

await t.test(
  'made data has the right size for every datatype, and random floats are in [0, 1)',
  async (t) => {
    const datatypes = Object.keys(DATATYPES) as Datatype[]
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...datatypes),
        fc.array(fc.nat(4), { maxLength: 3 }),
        fc.boolean(),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        async (datatype, dims, isRandom, value) => {
          const { config, itemSize } = DATATYPES[datatype]
          const input = {
            data_type: config,
            dims,
            ...(isRandom ? { random_data: true } : { zero_data: true }),
          }
          const tensor = await warmUpInput('x', input, {
            hasBatch: true,
            random: () => value,
            read: () => Promise.reject(new Error('no file')),
          })
          const count = dims.reduce((product, extent) => product * extent, 1)
          const size = count * (itemSize ?? 4)
          if (tensor.data.byteLength !== size) throw new Error(`size ${tensor.data.byteLength}`)
          if (!isRandom && tensor.data.some((byte) => byte !== 0)) throw new Error('not zero')
          const read = READERS[datatype]
          const view = new DataView(tensor.data.buffer)
          for (let at = 0; at < size; at += itemSize ?? 4) {
            if (read === undefined) break
            const number = read(view, at)
            const isLegal = datatype === 'BOOL' ? number <= 1 : number >= 0 && number <= 1
            if (!isLegal) throw new Error(`${datatype} ${number}`)
          }
        },
      ),
    )
    t.pass()
  },
)
