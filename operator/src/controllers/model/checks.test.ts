import { ModelSpec } from '@tutti/api'
import { fromModelConfig } from '@tutti/graph'
import type { Secret, Stored } from '@tutti/kube'
import { completeModelConfig, emptyModelConfig } from '@tutti/model-config'
import t from 'tap'
import { MODEL_CONFIG } from '../../testing/model-world.ts'
import { storedObject } from '../../testing/stored-object.ts'
import { credentialsDigest, withoutValues } from '../credentials-digest.ts'
import { findRival, type Served } from '../served-names.ts'
import { toStatusSignature } from '../to-signature.ts'
import { checkModel, type ModelCheckInput } from './check-model.ts'
import { findLoadMismatch, findMismatch } from './signature-mismatch.ts'

const SPEC = { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/yolo' }

function check(fields: object, o: Partial<ModelCheckInput> = {}) {
  const model = storedObject({ name: 'yolo' }, { spec: { ...SPEC, ...fields } })
  return checkModel({
    model,
    rival: undefined,
    settings: { allowsHostAccess: false },
    hasSecret: false,
    claimRefusal: undefined,
    placementRefusal: undefined,
    ...o,
  }).refusal
}

function at(name: string, creationTimestamp: string, o: object = {}): Served {
  const object = storedObject({ name }, { spec: {} })
  return { ...object, metadata: { ...object.metadata, creationTimestamp, ...o } }
}

function secret(data: object): Stored<Secret> {
  const annotations = { a: 'c2VjcmV0' }
  return withoutValues(
    storedObject(
      { name: 's', uid: 'one', annotations },
      { kind: 'Secret', data },
    ) as Stored<Secret>,
  )
}

await t.test('a Model that can be made is not refused', async (t) => {
  t.equal(check({}), undefined)
  t.equal(
    check({ storageUri: 'hostPath:///x' }, { settings: { allowsHostAccess: true } }),
    undefined,
  )
})

const nested = (levels: number): unknown =>
  JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)

await t.test('a pod spec that is deeper than any is refused, not worked on', async (t) => {
  t.equal(check({ podTemplate: { spec: nested(64) } }), undefined)
  for (const levels of [65, 9000]) {
    t.match(check({ podTemplate: { spec: nested(levels) } }), {
      reason: 'InvalidSpec',
      message: 'podTemplate.spec: got more than 64 levels, which no pod has',
    })
  }
})

await t.test('the first check that fails decides, with a path and what was wanted', async (t) => {
  const rival = storedObject({ name: 'other' }, { kind: 'Ensemble' })
  t.match(check({ storageUri: 'ftp://x' }, { rival }), {
    condition: 'Accepted',
    reason: 'InvalidSpec',
    message: /storageUri/,
  })
  t.match(check({ storageUri: 'hostPath:///x', modelName: 'm' }, { rival }), {
    reason: 'NameConflict',
    message: "modelName: 'm' is the served name of Ensemble 'other'; want another",
  })
  t.match(check({ storageUri: 'hostPath:///x' }), { reason: 'HostAccessNotAllowed' })
  const volumes = [{ name: 'a' }, { name: 'model', hostPath: { path: '/' } }]
  const podTemplate = { spec: { volumes } }
  t.match(check({ podTemplate }), {
    reason: 'HostAccessNotAllowed',
    message: /^podTemplate\.spec\.volumes\[1\]\.hostPath: got /,
  })
  t.equal(check({ podTemplate }, { settings: { allowsHostAccess: true } }), undefined)
  t.match(check({ podTemplate: { spec: { volumes: [{ name: 'a', hostPath: null }] } } }), {
    reason: 'InvalidSpec',
    message: /^podTemplate\.spec: got null at volumes\[0\]\.hostPath, /,
  })
  t.match(check({ storageUri: 's3://bucket/x', storage: { secretRef: { name: 'aws' } } }), {
    condition: 'ArtifactsReady',
    reason: 'SecretNotFound',
    message: /^storage\.secretRef\.name: there is no Secret "aws"/,
  })
})

await t.test('of two with one name the older has it, in both checks', async (t) => {
  const elder = at('b', '2026-01-01T00:00:00Z')
  const younger = at('a', '2026-01-01T00:00:01Z')
  const going = at('c', '2025-01-01T00:00:00Z', { deletionTimestamp: '2026-02-01T00:00:00Z' })
  t.equal(findRival(younger, [elder, younger, going]), elder)
  t.equal(findRival(elder, [elder, younger, going]), undefined)
})

const spec = (fields: object) => ModelSpec.parse({ ...SPEC, ...fields })
const image = { name: 'image', datatype: 'FP32', shape: [3, -1] }
const text = { name: 'text', datatype: 'BYTES', shape: [1] }

const MISMATCHES: readonly [object, RegExp | undefined][] = [
  [{}, undefined],
  [{ inputs: [image], outputs: [text], maxBatchSize: 4 }, undefined],
  [{ inputs: [{ ...image, shape: [-1, 5] }] }, undefined],
  [{ maxBatchSize: 8 }, /^spec\.maxBatchSize: 8, the model is served with 4/],
  [
    { inputs: [{ ...image, datatype: 'UINT8' }] },
    /^spec\.inputs\[0\]\(image\)\.datatype: UINT8, the model says FP32; leave spec\.inputs out/,
  ],
  [{ inputs: [{ ...image, shape: [4, -1] }] }, /\.shape: \[4,-1\], the model says \[3,-1\]/],
  [{ inputs: [{ ...image, shape: [3] }] }, /\.shape: \[3\], the model says \[3,-1\]/],
  [
    { outputs: [{ ...text, name: 'words' }] },
    /^spec\.outputs\[0\]\(words\): the model has no such output, it has 'text'/,
  ],
  [{ inputs: [image, { ...image, name: 'mask' }] }, /^spec\.inputs\[1\]\(mask\)/],
]

for (const [fields, wanted] of MISMATCHES) {
  await t.test(`declared ${JSON.stringify(fields)}`, async (t) => {
    const found = findMismatch(spec(fields), MODEL_CONFIG)
    if (wanted === undefined) t.equal(found, undefined)
    else t.match(found, wanted)
  })
}

await t.test('an imported Model without config.pbtxt fits what its pods serve', async (t) => {
  const names = { resourceName: 'yolo', servedName: 'yolo', isEnsemble: () => false }
  const given = { ...names, backend: 'onnxruntime', storageUri: SPEC.storageUri }
  const manifest = fromModelConfig(emptyModelConfig(), given)
  const served = completeModelConfig({
    config: undefined,
    directoryName: 'yolo',
    configPath: 'config.pbtxt',
    versionFiles: ['model.onnx'],
    autoComplete: true,
    inspect: {
      inputs: [{ name: 'image', datatype: 'FP32', dims: [-1, 3] }],
      outputs: [{ name: 'boxes', datatype: 'FP32', dims: [-1, 4] }],
      batchable: true,
    },
  })
  t.equal(served.max_batch_size, 4)
  t.equal(findMismatch(ModelSpec.parse(manifest.spec), served), undefined)
})

await t.test('a tensor that is not declared is missing', async (t) => {
  const config = {
    ...MODEL_CONFIG,
    output: [...MODEL_CONFIG.output, { ...MODEL_CONFIG.output[0], name: 'score' }],
  }
  t.match(
    findMismatch(spec({ outputs: [text] }), config as never),
    /^spec\.outputs: 'score' is missing, the model has it/,
  )
})

await t.test('a load error counts as a mismatch if it names a declared tensor', async (t) => {
  t.match(
    findLoadMismatch(spec({ inputs: [image] }), "tensor 'image': 3 dims"),
    /^spec\.inputs\[0\]/,
  )
  t.equal(findLoadMismatch(spec({ inputs: [image] }), 'no such file'), undefined)
  t.equal(findLoadMismatch(spec({}), "tensor 'image'"), undefined)
})

await t.test('a signature in the terms of the v2 protocol', async (t) => {
  t.same(toStatusSignature(MODEL_CONFIG), {
    maxBatchSize: 4,
    decoupled: false,
    inputs: [image],
    outputs: [text],
  })
})

await t.test('caches keep digests of the values of a Secret', async (t) => {
  t.notMatch(JSON.stringify(secret({ token: 'c2VjcmV0' })), /c2VjcmV0/)
  const one = credentialsDigest(secret({ token: 'YQ==' }))
  t.equal(credentialsDigest(secret({ token: 'YQ==', other: 'Yg==' })), one)
  t.not(credentialsDigest(secret({ token: 'Yg==' })), one)
})

await t.test(
  'the digest of credentials tells those nothing who cannot read the Secret',
  async (t) => {
    const stored = secret({ token: 'YQ==' })
    const other = { ...stored, metadata: { ...stored.metadata, uid: 'other' } }
    t.not(credentialsDigest(other), credentialsDigest(stored))
  },
)
