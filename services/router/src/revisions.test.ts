import { ServeError } from '@tutti/errors'
import { responsesTo } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  chain,
  collect,
  failure,
  oneToOne,
  quiet,
  request,
  ScriptedReplicas,
  type ScriptedVersion,
} from './testing/index.ts'

const wider = oneToOne.replace('name: "Y" data_type: TYPE_FP32', 'name: "Y" data_type: TYPE_FP64')

const m = (revision: string, config = oneToOne): ScriptedVersion => ({
  model: 'm',
  revision,
  config,
})

const twice = chain('m', 'm')

const ask = async (replicas: ScriptedReplicas, model = 'm') =>
  collect(
    responsesTo(replicas.router.resolve(model, ''), request(model === 'm' ? 'X' : 'IN'), quiet),
  )

const revisionsUsed = (replicas: ScriptedReplicas): string[] =>
  replicas.deliveries.map(({ envelope }) => envelope.revision)

await t.test('the revision of most replicas is pinned; of equals the newest', async (t) => {
  const replicas = new ScriptedReplicas()
  const rounds: [string, string, string][] = [
    ['a', 'old', 'old'],
    ['b', 'old', 'old'],
    ['c', 'new', 'old'],
    ['d', 'new', 'new'],
    ['a', 'new', 'new'],
  ]
  for (const [replica, revision, wanted] of rounds) {
    replicas.serve(replica, [m(revision)])
    for (let i = 0; i < 4; i++) await ask(replicas)
    t.same(new Set(revisionsUsed(replicas)), new Set([wanted]), `${replica} serves ${revision}`)
    for (const { replica: got } of replicas.deliveries.splice(0)) {
      t.ok(replicas.describe(got).models[0]?.versions[0]?.revision === wanted)
    }
  }
})

await t.test('replicas of the pinned revision share its requests', async (t) => {
  const replicas = new ScriptedReplicas()
  replicas.serve('a', [m('r')])
  replicas.serve('b', [m('r')])
  for (let i = 0; i < 6; i++) await ask(replicas)
  const counts = ['a', 'b'].map(
    (name) => replicas.deliveries.filter(({ replica }) => replica === name).length,
  )
  t.same(counts, [3, 3])
})

await t.test('a request whose revision is gone moves to one with the same signature', async (t) => {
  const replicas = new ScriptedReplicas()
  replicas.serve('a', [m('old')])
  const resolved = replicas.router.resolve('m', '')
  replicas.serve('a', [m('new')])
  await collect(responsesTo(resolved, request('X'), quiet))
  t.same(revisionsUsed(replicas), ['new'])
})

await t.test('it does not move to other inputs or outputs', async (t) => {
  const replicas = new ScriptedReplicas()
  replicas.serve('a', [m('old')])
  const resolved = replicas.router.resolve('m', '')
  replicas.serve('a', [m('new', wider)])
  t.match(await failure(collect(responsesTo(resolved, request('X'), quiet))), {
    code: 'UNAVAILABLE',
    reason: 'REVISION_GONE',
    message: /revision old is pinned and no longer served; what is served now has other inputs/,
    details: { model: 'm', version: '1', attempt: '3' },
  })
  t.equal(replicas.deliveries.length, 0)
  t.equal(replicas.router.memory.count, 0)
})

await t.test('it does not move once the revision has run for it', async (t) => {
  const replicas = new ScriptedReplicas({ ensembles: { e: twice } })
  replicas.serve('a', [m('old')])
  replicas.script = ({ envelope }) => {
    if (envelope.step === 'm#0') replicas.serve('a', [m('new')])
  }
  t.match(await failure(ask(replicas, 'e')), {
    reason: 'REVISION_GONE',
    message: /^in ensemble 'e', .*the request has used it already$/,
    details: { step: 'm#1', attempt: '3' },
  })
  t.same(revisionsUsed(replicas), ['old'])
})

await t.test(
  'a step that refuses the revision is asked anew, and the request goes on',
  async (t) => {
    const refused: string[] = []
    const replicas = new ScriptedReplicas({
      revisionRefused: (replica) => {
        refused.push(replica)
        replicas.serve(replica, [m('new')])
      },
    })
    replicas.serve('a', [m('old')])
    replicas.serve('a', [m('new')], { quietly: true })
    await ask(replicas)
    t.same(refused, ['a'])
    t.same(revisionsUsed(replicas), ['new'])
    t.equal(replicas.deliveries[0]?.envelope.attempt, 2)
  },
)

await t.test('a replica that cannot be reached is avoided by the next attempt', async (t) => {
  const replicas = new ScriptedReplicas()
  replicas.serve('a', [m('r')])
  replicas.serve('b', [m('r')])
  replicas.kill('a', { quietly: true })
  for (let i = 0; i < 4; i++) await ask(replicas)
  t.same(new Set(replicas.deliveries.map(({ replica }) => replica)), new Set(['b']))
})

await t.test('a pause of the only replica costs time and no requests', async (t) => {
  const replicas = new ScriptedReplicas({ ensembles: { e: twice } })
  replicas.serve('a', [m('r')])
  replicas.heartbeat('a', [['m', 1, 'r']])
  for (const model of ['m', 'e']) {
    replicas.directory.suspect('a', true)
    const asked = [ask(replicas, model), ask(replicas, model)]
    t.equal(replicas.deliveries.length, 0)
    replicas.directory.suspect('a', false)
    t.equal((await Promise.all(asked)).length, 2)
    replicas.deliveries.length = 0
  }
  replicas.directory.suspect('a', true)
  const asked = failure(ask(replicas))
  replicas.directory.remove('a')
  replicas.kill('a')
  t.match(await asked, { reason: 'STEP_UNAVAILABLE' })
})

await t.test('what may have run is not tried again', async (t) => {
  for (const reason of ['STEP_LOST', 'ENGINE_STOPPED', 'ENGINE_FAILED'] as const) {
    const replicas = new ScriptedReplicas()
    replicas.serve('a', [m('r')])
    replicas.serve('b', [m('r')])
    replicas.script = () => {
      throw new ServeError(reason, 'gone')
    }
    t.match(await failure(ask(replicas)), { reason, details: { replica: /^[ab]$/ } })
    t.equal(replicas.deliveries.length, 1, reason)
  }
})

await t.test('an output that the model does not have is no answer', async (t) => {
  for (const asked of ['m', 'e']) {
    const replicas = new ScriptedReplicas({ ensembles: { e: twice } })
    replicas.serve('a', [m('r')])
    replicas.output = 'answer'
    t.match(await failure(ask(replicas, asked)), {
      reason: 'RESPONSE_INVALID',
      message: /model 'm': got output "answer", want Y$/,
    })
    t.equal(replicas.deliveries.length, 1, 'it may have run')
    t.equal(replicas.router.memory.count, 0)
  }
})

await t.test('three attempts are all', async (t) => {
  const replicas = new ScriptedReplicas()
  replicas.serve('a', [m('r')])
  replicas.script = () => {
    throw new ServeError('SERVER_STOPPING', 'going')
  }
  t.match(await failure(ask(replicas)), { reason: 'SERVER_STOPPING', details: { attempt: '3' } })
  t.equal(replicas.deliveries.length, 3)
})

await t.test('a model without replicas is unavailable, not unknown, until one comes', async (t) => {
  const replicas = new ScriptedReplicas({ ensembles: { e: twice }, awaitsSteps: true })
  const { router } = replicas
  t.equal(router.isReady(), false, 'the ensemble waits for its model')
  replicas.serve('a', [m('r')])
  t.equal(router.isReady(), true)
  replicas.kill('a')
  for (const [name, prefix] of [
    ['m', ''],
    ['e', "in ensemble 'e', "],
  ] as const) {
    for (const version of ['', '1']) {
      const got = await failure((async () => router.resolve(name, version))())
      t.match(got, {
        code: 'UNAVAILABLE',
        reason: 'STEP_UNAVAILABLE',
        message: `${prefix}no replica serves model 'm' version 1`,
      })
    }
    t.equal(await router.isModelReady(name, ''), false)
  }
  t.same(await router.repositoryIndex(false), [
    {
      name: 'e',
      version: '1',
      state: 'UNAVAILABLE',
      reason: "depends on 'm', which no replica serves",
    },
    { name: 'm', version: '1', state: 'UNAVAILABLE', reason: 'no replica serves it' },
  ])
  t.equal(router.isReady(), false)
  replicas.serve('b', [m('s')])
  t.equal(router.isReady(), true)
  await ask(replicas, 'e')
  t.same(revisionsUsed(replicas), ['s', 's'])
})

await t.test('ensembles are validated again when what they compose changes', async (t) => {
  const replicas = new ScriptedReplicas({ ensembles: { e: twice } })
  replicas.serve('a', [m('r')])
  t.equal(await replicas.router.isModelReady('e', ''), true)
  replicas.serve('a', [m('s', wider)])
  t.equal(await replicas.router.isModelReady('e', ''), false)
  const [entry] = await replicas.router.repositoryIndex(false)
  t.match(entry, { name: 'e', state: 'UNAVAILABLE', reason: /FP64/ })
  replicas.serve('a', [m('r')])
  t.equal(await replicas.router.isModelReady('e', ''), true)
})

await t.test('a model is ready where a replica is, by its own check if it has one', async (t) => {
  const replicas = new ScriptedReplicas({ ensembles: { e: twice } })
  const { router, readiness } = replicas
  readiness.set('a m', false).set('b m', false)
  replicas.serve('a', [m('r')])
  replicas.serve('b', [m('r')])
  t.equal(await router.isModelReady('m', ''), false)
  t.equal(await router.isModelReady('e', ''), true, 'an ensemble of it is not asked')
  readiness.set('b m', true)
  t.equal(await router.isModelReady('m', '1'), true)
  readiness.delete('b m')
  t.equal(await router.isModelReady('m', ''), false, 'who does not answer is not')
  replicas.serve('c', [m('r')])
  t.equal(await router.isModelReady('m', ''), true, 'one without a check is')
})

await t.test('heartbeats decide what a replica takes, descriptions what it is', async (t) => {
  const replicas = new ScriptedReplicas()
  const { router } = replicas
  replicas.heartbeat('a', [['m', 1, 'r']])
  t.equal(await router.isModelReady('m', ''), false, 'not described yet')
  replicas.serve('a', [m('r')])
  await ask(replicas)
  replicas.heartbeat('a', [])
  t.match(await failure(ask(replicas)), { reason: 'STEP_UNAVAILABLE' }, 'it serves nothing')
  replicas.heartbeat('a', [['m', 1, 'r']])
  await ask(replicas)
  t.equal(replicas.deliveries.length, 2)
})

await t.test('replicas that drain do not count for the revision that is pinned', async (t) => {
  const replicas = new ScriptedReplicas()
  for (const [name, revision] of [
    ['a', 'old'],
    ['b', 'old'],
    ['c', 'new'],
  ] as const) {
    replicas.heartbeat(name, [['m', 1, revision]])
    replicas.serve(name, [m(revision, revision === 'new' ? wider : oneToOne)])
  }
  await ask(replicas)
  for (const name of ['a', 'b']) replicas.heartbeat(name, [['m', 1, 'old']], { draining: true })
  await ask(replicas)
  t.same(revisionsUsed(replicas), ['old', 'new'])
})

type Change =
  | { readonly kind: 'serve'; readonly replica: string; readonly revision: string }
  | { readonly kind: 'quiet'; readonly replica: string; readonly revision: string }
  | { readonly kind: 'kill'; readonly replica: string; readonly quietly: boolean }

const replica = fc.constantFrom('a', 'b', 'c')
const revision = fc.constantFrom('r1', 'r2', 'r3', 'w1')
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('serve' as const), replica, revision }),
  fc.record({ kind: fc.constant('quiet' as const), replica, revision }),
  fc.record({ kind: fc.constant('kill' as const), replica, quietly: fc.boolean() }),
)

function apply(replicas: ScriptedReplicas, todo: Change): void {
  if (todo.kind === 'kill') {
    replicas.kill(todo.replica, { quietly: todo.quietly })
    return
  }
  const config = todo.revision.startsWith('w') ? wider : oneToOne
  replicas.serve(todo.replica, [m(todo.revision, config)], { quietly: todo.kind === 'quiet' })
}

await t.test(
  'however a rollout goes, no request mixes revisions or stays unanswered',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { minLength: 1, maxLength: 8 }),
        fc.array(change, { maxLength: 6 }),
        async (before, during) => {
          const replicas: ScriptedReplicas = new ScriptedReplicas({
            ensembles: { e: twice },
            revisionRefused: (name) => replicas.serve(name, []),
          })
          replicas.serve('a', [m('r1')])
          for (const todo of before) apply(replicas, todo)
          const left = [...during]
          replicas.script = async () => {
            const todo = left.shift()
            if (todo !== undefined) apply(replicas, todo)
            await Promise.resolve()
          }
          const asked = ['m', 'e', 'm', 'e', 'm'].map((name) =>
            ask(replicas, name).then(
              () => 'answered',
              (error: unknown) => ServeError.from(error).reason,
            ),
          )
          const outcomes = await Promise.all(asked)
          const known = [
            'answered',
            'REVISION_GONE',
            'STEP_UNAVAILABLE',
            'MODEL_NOT_FOUND',
            'MODEL_NOT_READY',
          ]
          for (const outcome of outcomes) {
            if (!known.includes(outcome)) throw new Error(`unexpected outcome ${outcome}`)
          }
          const byRequest = Map.groupBy(replicas.deliveries, ({ envelope }) => envelope.requestKey)
          for (const [key, deliveries] of byRequest) {
            const used = new Set(deliveries.map(({ envelope }) => envelope.revision))
            if (used.size !== 1) throw new Error(`request ${key} ran under ${[...used].join(', ')}`)
          }
          if (replicas.router.memory.count !== 0) throw new Error('tensors are left in memory')
        },
      ),
      { numRuns: 200 },
    )
    t.pass()
  },
)
