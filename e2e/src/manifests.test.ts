// needs: python
import { join } from 'node:path'
import t from 'tap'
import { restCall } from './rest-call.ts'
import { FACE_MODELS, OCR, OCR_MODELS, SAMPLES } from './seed-systems.ts'
import { ROOT, runTutti, serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { PYTHON_FLAGS, runTritonChecks } from './triton-client.ts'

await t.test('both systems as manifests answer as from their repository', async (t) => {
  const results = t.testdir()
  const folder = join(results, 'manifests')
  const argv = ['import', 'triton', `${ROOT}model_repository`, `--output-dir=${folder}`]
  const prefix = '--storage-uri-prefix=pvc://models'
  t.match(await runTutti([...argv, prefix]), { code: 0 })
  const flags = [`-f=${folder}`, `--storage-map=pvc://models=${ROOT}model_repository`]
  const manifests = await serve(t, { repositories: [], flags: [...flags, ...PYTHON_FLAGS] })
  const repository = await serve(t, { repositories: ['model_repository'], flags: PYTHON_FLAGS })
  for (const model of [...FACE_MODELS, ...OCR_MODELS]) {
    for (const path of [`/v2/models/${model}`, `/v2/models/${model}/config`]) {
      const [ours, theirs] = await Promise.all(
        [manifests, repository].map(({ httpPort }) => restCall(httpPort, 'GET', path)),
      )
      t.equal(ours?.status, 200, path)
      t.same(ours?.json(), theirs?.json(), path)
    }
  }
  for (const target of [repository, manifests]) {
    const checks = [`--samples=${SAMPLES}`, `--results=${results}`]
    await runTritonChecks(t, 'served_systems.py', target, checks)
  }
})

await t.test('the example of Kubernetes in one process, as docs/kubernetes.md says', async (t) => {
  const map = `--storage-map=image://tutti/samples:0.1.0/model_repository=${OCR}`
  const flags = [`-f=${ROOT}examples/face/manifest.yaml`, map]
  const example = await serve(t, { repositories: [], flags })
  const face = await copyModels(t, FACE_MODELS, { from: OCR })
  const repository = await serve(t, { repositories: [face] })
  const shape = [16, 8, 3]
  const data = Array.from({ length: 16 * 8 * 3 }, (_, i) => (i * 7) & 0xff)
  const body = { inputs: [{ name: 'raw_image', datatype: 'UINT8', shape, data }] }
  const path = '/v2/models/ens_face_restoration_v2.1'
  const [ours, theirs] = await Promise.all(
    [example, repository].map(async ({ httpPort }) => ({
      metadata: (await restCall(httpPort, 'GET', path)).json(),
      answer: (
        await restCall(httpPort, 'POST', `${path}/infer`, { body: JSON.stringify(body) })
      ).json(),
    })),
  )
  t.match(ours?.answer, { outputs: [{ name: 'image_out', datatype: 'UINT8', shape }] })
  t.same(ours, theirs)
})
