// needs: python, nats
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import {
  EXAMPLE_COMMANDS,
  exampleRepositories,
  FETCHED_EXAMPLE,
  joinExampleManifests,
  prepareCheckout,
} from '../example-commands.ts'
import { ROOT } from '../serving.ts'
import { PYTHON, PYTHON_FLAGS } from '../triton-client.ts'
import { SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const SAMPLES = 'image://tutti/samples:0.1.0/'

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: { readonly modelName?: string; readonly storageUri?: string }
}

const nameOf = ({ metadata, spec }: Manifest): string => spec.modelName ?? metadata.name

const skip = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : SKIP

await t.test('the examples answer over processes as in one', { skip }, async (t) => {
  const text = await joinExampleManifests()
  const file = join(t.testdir(), 'all.yaml')
  await writeFile(file, text)
  const all = parseAllDocuments(text).map((document): Manifest => document.toJS())
  const manifests = all.filter(({ kind }) => kind === 'Model' || kind === 'Ensemble')
  const models = manifests.filter(({ kind }) => kind === 'Model')
  const directories = models.map((model) => {
    const path = model.spec.storageUri?.replace(SAMPLES, ROOT)
    return `--model-directory=${nameOf(model)}=${path}`
  })
  const harness = await startHarness(t)
  const [router] = await Promise.all([
    harness.router({ repositories: [], flags: [`-f=${file}`, ...(await exampleRepositories())] }),
    harness.step({ repositories: [], flags: [...directories, ...PYTHON_FLAGS] }),
    harness.step({ repositories: [], flags: ['--builtins'] }),
  ])
  await untilReady([router], manifests.map(nameOf))
  const { run, read } = await prepareCheckout(t, router.grpcPort)
  for (const [name, { asks }] of EXAMPLE_COMMANDS) {
    // Jobs, and pictures that differ in the last bit from one processor to the next, are compared in one process.
    const wanted = await read(`examples/${name}/expected.txt`).catch(() => undefined)
    if (wanted === undefined || name === FETCHED_EXAMPLE) continue
    t.same(await run(asks), { code: 0, out: wanted, err: '' }, name)
  }
})
