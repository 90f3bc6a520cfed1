// needs: nats
import { cp, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { addedBy, repositoryIndex } from '../control-churn.ts'
import { ask, openClient } from '../grpc-client.ts'
import { restCall } from '../rest-call.ts'
import type { Target } from '../serving.ts'
import { addBrokenVersion, copyModels, tempFolder } from '../temp-repository.ts'
import { SKIP, startHarness } from './harness.ts'

t.setTimeout(900_000)

/** Finds what a model adds, undefined while it does not answer. */
function tryAdded(target: Target, model: string): Promise<number | undefined> {
  return addedBy(target, model).catch(() => undefined)
}

await t.test('routers and steps refuse load and unload', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const repositories = [await copyModels(t, ['versioned', 'ens_versioned'])]
  const [router, step] = await Promise.all([
    harness.router({ repositories }),
    harness.step({ repositories }),
  ])
  await until('it answers', async () => (await tryAdded(router, 'ens_versioned')) === 4)
  for (const target of [router, step]) {
    const client = openClient(t, target)
    for (const [verb, call] of [
      ['load', 'RepositoryModelLoad'],
      ['unload', 'RepositoryModelUnload'],
    ] as const) {
      const text = `explicit model load / unload is not allowed: the flags of steps and routers rule`
      const path = `/v2/repository/models/versioned/${verb}`
      const answer = await restCall(target.httpPort, 'POST', path)
      t.equal(answer.status, 503)
      t.match(answer.json(), { error: text })
      await t.rejects(ask(client, call, { model_name: 'versioned' }), {
        code: status.UNAVAILABLE,
        details: text,
      })
    }
    const { models } = await ask(client, 'RepositoryIndex')
    t.ok(models.every(({ state }) => state === 'READY'))
  }
  t.equal(await addedBy(router, 'ens_versioned'), 4)
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
  await addBrokenVersion(repository, 'versioned', 4)
  await until('the broken version is listed beside those that are served', async () => {
    const lines = (await repositoryIndex(router)).filter(({ name }) => name === 'versioned')
    t.match(lines[1], { version: '3', state: 'READY' })
    return /valid ONNX/.test(lines.find(({ version }) => version === '4')?.reason ?? '')
  })
  t.equal(await addedBy(router, 'ens_versioned'), 3)
})
