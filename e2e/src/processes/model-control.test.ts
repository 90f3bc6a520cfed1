// needs: nats, python
import { cp, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { addedBy, controlModel } from '../control-churn.ts'
import { controlRepository } from '../control-repository.ts'
import { restCall } from '../rest-call.ts'
import type { Target } from '../serving.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { runTritonChecks } from '../triton-client.ts'
import { until } from '../until.ts'
import { SKIP, startHarness } from './harness.ts'

t.setTimeout(900_000)

const EXPLICIT = ['--model-control-mode=explicit']
const CONFIG = JSON.stringify({
  platform: 'onnxruntime_onnx',
  input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [-1] }],
  output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [-1] }],
})

/** `name version: STATE reason` of the index. */
async function indexOf(target: Target): Promise<readonly string[]> {
  const answer = await restCall(target.httpPort, 'POST', '/v2/repository/index')
  const entries = answer.json() as readonly Record<string, string>[]
  return entries.map((e) =>
    `${e['name']} ${e['version'] ?? ''}: ${e['state'] ?? ''} ${e['reason'] ?? ''}`.trimEnd(),
  )
}

/** What a model adds, undefined while it does not answer. */
function tryAdded(target: Target, model: string): Promise<number | undefined> {
  return addedBy(target, model).catch(() => undefined)
}

await t.test('NVIDIA’s clients load and unload over steps', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const pristine = await controlRepository(t)
  const repository = await tempFolder(t)
  const repositories = [repository]
  const [router] = await Promise.all([
    harness.router({ repositories, flags: EXPLICIT }),
    harness.step({ repositories, flags: EXPLICIT }),
    harness.step({ repositories, flags: EXPLICIT }),
  ])
  const folders = [`--repository=${repository}`, `--pristine=${pristine}`]
  await runTritonChecks(t, 'model_control.py', router, folders)
})

await t.test(
  'routers agree, and steps that come later are brought there',
  { skip: SKIP },
  async (t) => {
    const harness = await startHarness(t)
    const repositories = [await copyModels(t, ['versioned', 'ens_versioned', 'add_one'])]
    const explicit = { repositories, flags: EXPLICIT }
    const [one, two, step] = await Promise.all([
      harness.router(explicit),
      // It has no ensemble of its own: it hears of those of the others.
      harness.router({ repositories: [], flags: EXPLICIT }),
      harness.step(explicit),
    ])
    await controlModel(one, 'ens_versioned', 'load')
    t.equal(await addedBy(one, 'ens_versioned'), 4)
    await until(
      'the other router serves it',
      async () => (await tryAdded(two, 'ens_versioned')) === 4,
    )

    const bytes = await readFile(join(repositories[0] ?? '', 'versioned/2/model.onnx'))
    const files = { 'file:1/model.onnx': bytes.toString('base64') }
    await controlModel(two, 'in_memory', 'load', { config: CONFIG, ...files })
    t.equal(await addedBy(two, 'in_memory'), 2)

    t.comment('a step that comes later is told; then the first one goes')
    const late = await harness.step(explicit)
    const third = await harness.router(explicit)
    await until('the late step serves all', async () => {
      const lines = await indexOf({ ...late })
      return ['in_memory 1: READY', 'versioned 1: READY', 'versioned 3: READY'].every((line) =>
        lines.includes(line),
      )
    })
    await step.process.stop()
    for (const router of [one, two, third]) {
      await until(
        'the late step answers',
        async () => (await tryAdded(router, 'ens_versioned')) === 4,
      )
      t.equal(await addedBy(router, 'in_memory'), 2)
    }

    t.comment('an unload at any router holds at all of them, and for steps that come later')
    await controlModel(third, 'ens_versioned', 'unload', { unload_dependents: true })
    await controlModel(third, 'in_memory', 'unload')
    for (const router of [one, two, third]) {
      await until('it is unloaded everywhere', async () =>
        (await indexOf(router)).every((line) => !/^(ens_versioned|in_memory) .*READY/.test(line)),
      )
      t.equal(await tryAdded(router, 'versioned'), undefined)
    }
    const last = await harness.step({
      repositories,
      flags: [...EXPLICIT, '--load-model=versioned', '--load-model=add_one'],
    })
    await until('the last step unloads what was unloaded', async () =>
      (await indexOf(last)).includes('versioned 3: UNAVAILABLE unloaded'),
    )
    t.ok((await indexOf(last)).includes('add_one 1: READY'), 'nobody asked for another state')
  },
)

await t.test(
  'a step may serve only what --model names, and is named when it fails',
  { skip: SKIP },
  async (t) => {
    const harness = await startHarness(t)
    const good = await copyModels(t, ['versioned', 'add_one'])
    const bad = await copyModels(t, ['versioned'])
    await writeFile(join(bad, 'versioned/3/model.onnx'), 'no model')
    const [router, , failing] = await Promise.all([
      harness.router({ repositories: [], flags: EXPLICIT }),
      harness.step({ repositories: [good], models: ['versioned'], flags: EXPLICIT }),
      harness.step({ repositories: [bad], flags: EXPLICIT }),
    ])
    await until('both steps are described', async () =>
      (await indexOf(router)).includes('versioned :'),
    )
    await t.rejects(controlModel(router, 'add_one', 'load'), {
      message:
        /failed to load 'add_one', failed to poll from model repository: no model repository has/,
    })
    const failure: unknown = await controlModel(router, 'versioned', 'load').catch(
      (e: unknown) => e,
    )
    t.match(
      String(failure),
      /load failed for model 'versioned': version 3 is at UNAVAILABLE state: /,
    )
    t.match(String(failure), new RegExp(`step '${failing.id}'; 1 of 2 steps failed`))
    t.equal(await addedBy(router, 'versioned'), 3, 'the other step serves it')
  },
)

await t.test('where no step may serve a model the answer says so', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const repositories = [await copyModels(t, ['versioned', 'ens_versioned'])]
  const [router] = await Promise.all([
    harness.router({ repositories, flags: [...EXPLICIT, '--load-model=ens_versioned'] }),
    harness.step({ repositories }),
  ])
  await t.rejects(controlModel(router, 'versioned', 'load'), {
    message: /failed to poll from model repository: no step that is there may serve it/,
  })
  t.comment('a step that serves without being asked makes the ensemble whole all the same')
  await until('it answers', async () => (await tryAdded(router, 'ens_versioned')) === 4)
  const plain = await harness.router({ repositories })
  await t.rejects(controlModel(plain, 'versioned', 'load'), {
    message: /explicit model load \/ unload is not allowed if polling is enabled/,
  })
})

await t.test('routers and steps follow their repositories', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const repository = await copyModels(t, ['versioned'])
  const ensembles = await tempFolder(t)
  const source = await copyModels(t, ['ens_versioned'])
  const flags = ['--model-control-mode=poll', '--repository-poll-secs=1']
  const [router] = await Promise.all([
    harness.router({ repositories: [ensembles], flags }),
    harness.step({ repositories: [repository], flags }),
  ])
  await until('the model is served', async () => (await tryAdded(router, 'versioned')) === 3)
  await cp(join(source, 'ens_versioned'), join(ensembles, 'ens_versioned'), { recursive: true })
  await until(
    'the new ensemble is served',
    async () => (await tryAdded(router, 'ens_versioned')) === 4,
  )
  const file = join(repository, 'versioned/3/model.onnx')
  await cp(join(repository, 'versioned/2/model.onnx'), `${file}~`)
  await rename(`${file}~`, file)
  await until('the change is served', async () => (await tryAdded(router, 'ens_versioned')) === 3)
})
