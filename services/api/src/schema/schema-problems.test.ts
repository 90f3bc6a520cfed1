import t from 'tap'
import { z } from 'zod'
import { parseManifest } from '../parse-manifest.ts'
import { ensembleManifest, modelManifest } from '../testing/manifests.ts'
import { describeIssue, toProblemText, toSchemaProblems } from './schema-problems.ts'

type Spec = Readonly<Record<string, unknown>>

const model = (spec: Spec): string => {
  const parsed = parseManifest('Model', modelManifest('m', spec))
  return parsed.success ? '' : toProblemText(parsed.problems)
}
const ensemble = (spec: Spec): string => {
  const parsed = parseManifest('Ensemble', ensembleManifest('e', spec))
  return parsed.success ? '' : toProblemText(parsed.problems)
}
const tensor = { name: 't', datatype: 'FP32', shape: [1] }

await t.test('what was got and what is wanted, in our words', async (t) => {
  const cases: readonly [string, string][] = [
    [model({ modelFormat: 'onnx' }), "spec.modelFormat: got 'onnx', want an object"],
    [
      model({ modelFormat: { name: 'tensorrt' } }),
      "spec.modelFormat.name: got 'tensorrt', want onnx, pytorch or python",
    ],
    [model({ storageUri: undefined }), 'spec.storageUri: got none, want text'],
    [model({ maxBatchSize: '8' }), "spec.maxBatchSize: got '8', want a number"],
    [model({ maxBatchSize: 1.5 }), 'spec.maxBatchSize: got 1.5, want a whole number'],
    [model({ maxBatchSize: -1 }), 'spec.maxBatchSize: got -1, want at least 0'],
    [model({ instances: { count: 2000 } }), 'spec.instances.count: got 2000, want at most 1024'],
    [
      model({ instances: { count: 2, sharedInterpreter: 'yes' } }),
      "spec.instances.sharedInterpreter: got 'yes', want true or false",
    ],
    [
      model({ instances: { count: 2, sharedInterpreter: true } }),
      'spec.instances.sharedInterpreter: got true for another format than python, want it for Python models alone',
    ],
    [model({ instances: { count: 2, sharedInterpreter: false } }), ''],
    [model({ inputs: [] }), 'spec.inputs: got 0 of them, want at least 1'],
    [model({ inputs: {} }), 'spec.inputs: got an object, want a list'],
    [model({ paused: 'yes' }), "spec.paused: got 'yes', want true or false"],
    [
      model({ inputs: [{ ...tensor, name: true }] }),
      'spec.inputs[0].name: got true, want text; YAML reads an unquoted y, n, on, off, yes and no so',
    ],
    [
      model({ timeouts: { load: '10 minutes' } }),
      "spec.timeouts.load: got '10 minutes', want a duration above 0, e.g. 500ms, 2s or 1m30s",
    ],
    [
      model({ timeouts: { load: 30 } }),
      'spec.timeouts.load: got 30, want a duration with its unit, such as 30s or 30ms',
    ],
    [
      model({ batching: { maxQueueDelay: 0.5 } }),
      "spec.batching.maxQueueDelay: got 0.5, want 'auto', or a duration above 0, e.g. 100us, 5ms or 1s",
    ],
    [model({ timeouts: { load: [] } }), 'spec.timeouts.load: got a list, want text'],
    [
      ensemble({ timeout: -1 }),
      'spec.timeout: got -1, want a duration above 0, e.g. 500ms, 2s or 1m30s',
    ],
    [
      model({ resources: { limits: { cpu: '2 cores', memory: true } } }),
      "spec.resources.limits.cpu: got '2 cores', want a quantity, e.g. 500m or 4Gi; spec.resources.limits.memory: got true, want a number or text",
    ],
    [
      model({ modelName: 'a/b' }),
      "spec.modelName: got 'a/b', want letters, digits and _.:+@-, beginning with a letter, a digit or _",
    ],
    [
      ensemble({ expose: { ingress: { hosts: ['https://a.example.com'] } } }),
      "spec.expose.ingress.hosts[0]: got 'https://a.example.com', want a host name, e.g. models.example.com or *.example.com",
    ],
  ]
  for (const [got, wanted] of cases) t.equal(got, wanted)
})

await t.test('a field that is not known names the one that may be meant', async (t) => {
  t.equal(model({ scalling: {} }), 'spec.scalling: there is no such field; did you mean scaling?')
  t.equal(
    model({ inputs: [{ ...tensor, data_type: 'x', dims: [] }] }),
    'spec.inputs[0].data_type: there is no such field; did you mean datatype?; spec.inputs[0].dims: there is no such field',
  )
  t.equal(
    model({ versionPolicy: { latest: { numVersions: 1, num_versions: 1 } } }),
    'spec.versionPolicy.latest.num_versions: there is no such field; did you mean numVersions?',
  )
})

await t.test('one line, whatever is written', async (t) => {
  const schema = z.strictObject({ a: z.literal('x'), b: z.tuple([z.int()]).optional() })
  const texts = (value: unknown): string => {
    const { error } = schema.safeParse(value, { error: describeIssue })
    return error === undefined ? '' : toProblemText(toSchemaProblems(schema, error))
  }
  t.equal(texts({ a: 'y\nz' }), "a: got 'y\\nz', want x")
  t.equal(texts({ a: 'y'.repeat(99) }), `a: got '${'y'.repeat(64)}...', want x`)
  t.equal(texts(1), 'got 1, want an object')
  t.match(texts({ a: 'x', b: [] }), /^b: got 0 of them, want at least 1/)
  t.equal(
    texts({ a: 'x', b: [{ c: 1 }] }),
    'b[0]: got an object, want a number',
    'a field within an unknown field has no hint',
  )
})
