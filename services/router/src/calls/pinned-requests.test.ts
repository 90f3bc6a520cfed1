import { EMPTY_CONTEXT } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import { collect, ScriptedReplicas } from '../testing/index.ts'

const IO = `input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }`
const STEP =
  'step { model_name: "m" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "Y" value: "Y" } }'
const INNER = `platform: "ensemble" ${IO} ensemble_scheduling { ${STEP} }`
const OUTER = INNER.replace('"m"', '"inner"')

const request = {
  context: EMPTY_CONTEXT,
  inputs: [{ name: 'x', datatype: 'FP32' as const, shape: [1], data: new Uint8Array(4) }],
  requestedOutputs: [],
}

const model = (name: string, revision: string) => ({
  model: name,
  revision,
  config: `backend: "b" ${IO}`,
})

await t.test('a version is pinned as long as a request may ask for it', async (t) => {
  for (const asked of ['m', 'inner', 'outer']) {
    const replicas = new ScriptedReplicas({ ensembles: { inner: INNER, outer: OUTER } })
    const { router } = replicas
    replicas.serve('a', [model('m', 'r'), model('other', 'r')])
    const gate = Promise.withResolvers<void>()
    replicas.script = () => gate.promise
    const { signal } = new AbortController()
    const answered = collect(responsesTo(router.resolve(asked, ''), request, { signal }))
    const pin = { model: 'm', version: 1, revision: 'r' }
    let isUnpinned = false
    const unpinned = router.whenUnpinned(pin).then(() => (isUnpinned = true))
    await router.whenUnpinned({ ...pin, revision: 's' })
    await router.whenUnpinned({ ...pin, version: 2 })
    await router.whenUnpinned({ ...pin, model: 'other' })
    t.equal(isUnpinned, false, asked)
    replicas.serve('a', [model('m', 's')])
    t.equal(isUnpinned, false, 'a new revision does not take the pin of the old one')
    gate.resolve()
    await answered
    await unpinned
    t.equal(isUnpinned, true)
  }
})

await t.test('requests that fail or are refused unpin too', async (t) => {
  const replicas = new ScriptedReplicas({ ensembles: { inner: INNER } })
  const { router } = replicas
  replicas.serve('a', [model('m', 'r')])
  const { signal } = new AbortController()
  const bad = { ...request, inputs: [] }
  await t.rejects(collect(responsesTo(router.resolve('inner', ''), bad, { signal })))
  replicas.script = () => {
    throw new Error('broken')
  }
  for (const name of ['m', 'inner']) {
    await t.rejects(collect(responsesTo(router.resolve(name, ''), request, { signal })))
  }
  const cancel = new AbortController()
  replicas.script = () => new Promise(() => {})
  const cancelled = collect(
    responsesTo(router.resolve('inner', ''), request, { signal: cancel.signal }),
  )
  cancel.abort(new Error('gone'))
  await t.rejects(cancelled)
  await router.whenUnpinned({ model: 'm', version: 1, revision: 'r' })
})
