import { readFile } from 'node:fs/promises'
import { until } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { FACE_MODELS, OCR } from '../seed-systems.ts'
import { ROOT, runTutti, serve } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { install, removeAfter } from './release.ts'
import { openWorkloads } from './workloads.ts'

t.setTimeout(1_200_000)

const SPACE = 'example'
const IN_SPACE = `--namespace=${SPACE}`
const READY = ['wait', '--for=condition=Ready', '--timeout=300s', IN_SPACE]
const SAMPLES = 'image://tutti/samples:0.1.0/model_repository'
const SHAPE = [96, 64, 3]

const QUESTION = {
  modelName: 'ens_face_restoration_v2.1',
  inputs: [
    {
      name: 'raw_image',
      datatype: 'UINT8' as const,
      shape: SHAPE,
      data: Uint8Array.from({ length: 96 * 64 * 3 }, (_, i) => (i * 7 + (i >> 6)) & 0xff),
    },
  ],
}

async function answerOf(t: Test, address: string): Promise<Buffer> {
  const client = new InferenceClient({ address })
  t.teardown(() => client.close())
  const { outputs } = await client.infer(QUESTION)
  const [output] = outputs
  t.same([output?.name, output?.shape], ['image_out', SHAPE], address)
  return Buffer.from(output?.data ?? [])
}

const model = (name: string, storageUri: string, spec: object = {}) => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Model',
  metadata: { namespace: SPACE, name },
  spec: { modelFormat: { name: 'onnx' }, storageUri, ...spec },
})

/** Reads what an example prints, as its README says. */
const expected = (name: string) => readFile(`${ROOT}examples/${name}/expected.txt`, 'utf8')

/** Waits until a Model says why its files cannot be had. */
async function says(name: string, message: RegExp): Promise<void> {
  await until(
    () => `${name} says ${message}`,
    async () => {
      const { status } = await getObject('model', name, IN_SPACE)
      const { reason = '', message: text = '' } = status?.lastFailure ?? {}
      return reason === 'FetchFailed' && message.test(text)
    },
  )
}

await t.test('Models from an image', { skip: withoutTuttiImages() }, async (t) => {
  removeAfter(t)
  await createNamespace(t, SPACE)
  await install()

  await t.test('the example is one command, and answers as one process does', async (t) => {
    await kubectl('apply', `--filename=${ROOT}examples/face/manifest.yaml`, IN_SPACE)
    await kubectl(...READY, 'models,ensembles', '--all')
    const repository = await copyModels(t, FACE_MODELS, { from: OCR })
    const { grpcPort } = await serve(t, { repositories: [repository] })
    const wanted = await answerOf(t, `127.0.0.1:${grpcPort}`)
    const pods = await openWorkloads(SPACE).pods('app.kubernetes.io/component=router')
    t.equal(pods.length, 1)
    const found = await answerOf(t, `${pods[0]?.['status'].podIP}:8001`)
    t.equal(found.byteLength, 96 * 64 * 3)
    t.ok(found.equals(wanted))
    t.notOk(found.equals(Buffer.from(QUESTION.inputs[0]?.data ?? [])))
  })

  await t.test('a Python model that asks others, and one that streams', async (t) => {
    const files = ['detector', 'text-stream'].map((name) => {
      return `--filename=${ROOT}examples/${name}/manifest.yaml`
    })
    await kubectl('apply', ...files, IN_SPACE)
    await kubectl(...READY, 'models', '--all')
    const [pod] = await openWorkloads(SPACE).pods('app.kubernetes.io/component=router')
    const ask = async (...words: readonly string[]): Promise<string> => {
      const where = [`--url=grpc://${pod?.['status'].podIP}:8001`, '--format=json']
      const { out, err } = await runTutti(['infer', ...words, ...where])
      return `${out}${err}`
    }
    const picture = `picture=@${ROOT}examples/detector/input.png`
    t.equal(await ask('find_shapes', `--input=${picture}`), await expected('detector'))
    const words = await ask('markov_text', '--input=prompt=Alice', '--input=max_words=3')
    t.ok(words.length > 50 && (await expected('text-stream')).endsWith(words), words)
  })

  await t.test('a digest is compared, and a Python model has the image with Python', async (t) => {
    const args = ['fetch', '--verify', `${OCR}/gfpgan`, '--print-digest', '--log-info=false']
    const { out } = await runTutti(args)
    const digest = out.trim()
    await apply(
      model('gfpgan', `${SAMPLES}/gfpgan`, { storage: { digest } }),
      model('python', `${SAMPLES}/recognition_postprocessing`, {
        modelName: 'recognition_postprocessing',
        modelFormat: { name: 'python' },
      }),
    )
    t.match(await kubectl(...READY, 'model/gfpgan', 'model/python'), /condition met/)
  })

  await t.test('a Model says why its image cannot give the files', async () => {
    const storageUri = `${SAMPLES}/pre_gfpgan`
    const digest = `sha256:${'0'.repeat(64)}`
    await apply(
      model('wrong', storageUri, { storage: { digest } }),
      model('nowhere', `${SAMPLES}/nowhere`),
      model('without-cp', 'image://localhost/nats:test/usr'),
    )
    await says('wrong', /want sha256:0{64}/)
    await says('nowhere', /cannot stat .*storageUri '.*nowhere', want a folder that the image has/)
    await says('without-cp', /"cp": executable file not found.*want an image in storageUri that/)
  })
})
