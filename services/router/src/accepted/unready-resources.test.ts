import { createManualClock } from '@tutti/chassis/testing'
import type { KubeObject, Resource, Stored } from '@tutti/kube'
import t from 'tap'
import { UnreadyResources } from './unready-resources.ts'

interface Told {
  readonly name: string
  readonly conditions?: Readonly<Record<string, readonly [string, string, string]>>
  readonly observed?: number
  readonly modelName?: string
}

/** As the operator leaves it; conditions are [status, reason, message]. */
function told({ name, conditions = {}, observed = 1, modelName }: Told) {
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'any',
    metadata: {
      name,
      generation: 1,
      creationTimestamp: '1970-01-01T00:00:00Z',
      uid: name,
      resourceVersion: '1',
    },
    spec: { modelName },
    status: {
      observedGeneration: observed,
      conditions: Object.entries(conditions).map(([type, [status, reason, message]]) => ({
        type,
        status,
        reason,
        message,
        lastTransitionTime: '1970-01-01T00:00:00Z',
      })),
    },
  }
}

/** Reads the given lists, and counts the calls. */
function setup(lists: Readonly<Record<string, readonly Told[]>>) {
  const clock = createManualClock()
  const asked: string[] = []
  const list = async <T extends KubeObject>(resource: Resource<T>) => {
    asked.push(resource.plural)
    const found = lists[resource.plural]
    if (found === undefined) throw new Error(`${resource.plural} is forbidden`)
    const items: readonly unknown[] = found.map(told)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test writes objects of that kind
    return { items: items as readonly Stored<T>[], resourceVersion: '1' }
  }
  const resources = new UnreadyResources({ client: { list }, namespace: 'shop', clock })
  return { resources, clock, asked }
}

const FALSE = (reason: string, message = '') => ['False', reason, message] as const
const TRUE = (reason: string, message = '') => ['True', reason, message] as const

await t.test('what is not Ready is told, what was refused first', async (t) => {
  const { resources } = setup({
    ensembles: [
      { name: 'ready', conditions: { Accepted: TRUE('Accepted'), Ready: TRUE('Ready') } },
      {
        name: 'waits',
        conditions: { Accepted: FALSE('SchemaPending'), Ready: FALSE('SchemaPending', 'of m') },
      },
      {
        name: 'refused',
        modelName: 'faces',
        conditions: {
          Accepted: FALSE('UnknownTensor', 'steps[0](a).inputMap[x]: no'),
          Ready: FALSE('UnknownTensor', 'steps[0](a).inputMap[x]: no'),
          Degraded: TRUE('EarlierGenerationServed', 'earlier'),
        },
      },
      { name: 'unseen', observed: 0, conditions: { Accepted: FALSE('UnknownTensor', 'old') } },
    ],
    models: [
      { name: 'limps', conditions: { Ready: TRUE('Ready'), Degraded: TRUE('OOMKilled', 'pod') } },
      { name: 'broken', conditions: { Ready: FALSE('ImagePullBackOff', 'x'.repeat(5000)) } },
      { name: 'taken', conditions: { Accepted: FALSE('NameConflict', 'modelName: of a') } },
      { name: 'new' },
    ],
  })
  const all = await resources.read()
  t.same(
    all.map(({ kind, name, model, state, reason }) => [kind, name, model, state, reason]),
    [
      ['Ensemble', 'refused', 'faces', 'refused', 'UnknownTensor'],
      ['Model', 'taken', 'taken', 'refused', 'NameConflict'],
      ['Ensemble', 'waits', 'waits', 'not ready', 'SchemaPending'],
      ['Ensemble', 'unseen', 'unseen', 'not ready', 'NotObserved'],
      ['Model', 'broken', 'broken', 'not ready', 'ImagePullBackOff'],
      ['Model', 'new', 'new', 'not ready', 'Pending'],
      ['Model', 'limps', 'limps', 'degraded', 'OOMKilled'],
    ],
  )
  t.equal(all[0]?.message, 'steps[0](a).inputMap[x]: no')
  t.equal(all[0]?.help, 'https://tutti.dev/docs/conditions/#ensemble')
  t.equal(all.find(({ name }) => name === 'broken')?.message.length, 1002, 'long ones are cut')
})

await t.test(
  'all pages read one answer, which is kept for a time that grows with it',
  async (t) => {
    const models = Array.from({ length: 1000 }, (_, i): Told => ({ name: `m${i}` }))
    const { resources, clock, asked } = setup({ ensembles: [], models })
    t.same(asked, [], 'nothing is read before a page asks')
    const [one, other] = await Promise.all([resources.read(), resources.read()])
    t.equal(one, other)
    clock.advance(19_999)
    t.equal(await resources.read(), one)
    t.same(asked, ['ensembles', 'models'])
    clock.advance(1)
    await resources.read()
    t.equal(asked.length, 4)
  },
)

await t.test('what cannot be read is told, and tried again ten seconds later', async (t) => {
  const { resources, clock, asked } = setup({ ensembles: [] })
  await t.rejects(resources.read(), { message: 'models is forbidden' })
  clock.advance(9999)
  await t.rejects(resources.read(), { message: 'models is forbidden' })
  t.equal(asked.length, 2)
  clock.advance(1)
  await t.rejects(resources.read(), { message: 'models is forbidden' })
  t.equal(asked.length, 4)
})
