import { ServeError } from '@tutti/errors'
import { Lender } from '@tutti/tensor/testing'
import t from 'tap'
import {
  chain,
  ensembleIo,
  floats,
  oneToOne,
  quiet,
  request,
  type ScriptedModel,
  scriptedRouter,
  step,
  toFloats,
} from '../testing/index.ts'

const double: ScriptedModel = {
  config: oneToOne,
  run: (inputs) =>
    new Map([
      [
        'Y',
        floats(
          'Y',
          [...(inputs.get('X') ?? [])].map((x) => 2 * x),
        ),
      ],
    ]),
}
const broken: ScriptedModel = {
  config: oneToOne,
  run: () => {
    throw new ServeError('ENGINE_FAILED', 'it broke')
  },
}
const stuck: ScriptedModel = { config: oneToOne, run: () => new Promise(() => {}) }

const nested = `${ensembleIo} ensemble_scheduling { ${step('E', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`

/** Sends a request whose inputs are lent to a router whose steps lend their outputs. */
async function open() {
  const lender = new Lender()
  const { router } = await scriptedRouter({
    models: { double, broken, stuck },
    ensembles: {
      E: chain('double', 'double'),
      nested,
      fails: chain('double', 'broken'),
      waits: chain('double', 'stuck'),
    },
    lender,
  })
  const infer = (model: string, o: { readonly signal?: AbortSignal; keep?: boolean } = {}) => {
    const { tensors, retain, end } = lender.lend([floats(model === 'double' ? 'X' : 'IN', [1, 2])])
    return new Promise<() => number[]>((resolve, reject) => {
      const sink = {
        send: (response: Parameters<Parameters<typeof lender.sink>[0]['send']>[0]) => {
          const giveBack = o.keep === true ? response.retain?.() : undefined
          const [output] = response.outputs
          const seen = [...toFloats(output?.data)]
          end()
          resolve(() => {
            if (giveBack === undefined) return seen
            const late = [...toFloats(output?.data)]
            giveBack()
            return late
          })
        },
        fail: (error: ServeError) => {
          end()
          reject(error)
        },
      }
      const lent = { ...request('IN'), inputs: tensors, retain }
      router.resolve(model, '').execute(lent, sink, { ...quiet, ...o })
    })
  }
  return { lender, router, infer }
}

await t.test('lent tensors are read while they are valid, and given back once', async (t) => {
  const { lender, router, infer } = await open()
  for (const [model, wanted] of [
    ['double', [2, 4]],
    ['E', [4, 8]],
    ['nested', [4, 8]],
  ] as const) {
    t.same((await infer(model))(), wanted, model)
    t.equal(lender.open, 0, `${model}: all are given back`)
    const late = await infer(model, { keep: true })
    t.ok(lender.open > 0, 'the reader has not given them back')
    t.same(late(), wanted, `${model}: a reader that retains them reads later`)
    t.equal(lender.open, 0)
  }
  t.equal(router.memory.count, 0)
})

await t.test('a request that fails or is cancelled gives its tensors back', async (t) => {
  const { lender, router, infer } = await open()
  await t.rejects(infer('fails'), { code: 'INTERNAL' })
  t.equal(lender.open, 0)
  const cancel = new AbortController()
  const waits = infer('waits', { signal: cancel.signal })
  await new Promise(setImmediate)
  cancel.abort(new ServeError('CANCELLED', 'gone'))
  await t.rejects(waits, { code: 'CANCELLED' })
  t.same([lender.open, router.memory.count], [0, 0])
})
