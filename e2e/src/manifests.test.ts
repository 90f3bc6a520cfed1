// needs: python
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { SAMPLES } from './seed-systems.ts'
import { ROOT, serve, TUTTI } from './serving.ts'
import { PYTHON_FLAGS, runTritonChecks } from './triton-client.ts'

await t.test('both systems as manifests answer as from their repository', async (t) => {
  const folder = join(t.testdir(), 'manifests')
  const argv = ['import', 'triton', `${ROOT}model_repository`, `--output-dir=${folder}`]
  const prefix = '--storage-uri-prefix=pvc://models'
  await promisify(execFile)(process.execPath, [TUTTI, ...argv, prefix])
  const flags = [`-f=${folder}`, `--storage-map=pvc://models=${ROOT}model_repository`]
  const manifests = await serve(t, { repositories: [], flags: [...flags, ...PYTHON_FLAGS] })
  const repository = await serve(t, { repositories: ['model_repository'], flags: PYTHON_FLAGS })
  await runTritonChecks(t, 'manifests.py', manifests, [
    `--other-grpc=127.0.0.1:${repository.grpcPort}`,
    `--other-http=127.0.0.1:${repository.httpPort}`,
    `--samples=${SAMPLES}`,
  ])
})
