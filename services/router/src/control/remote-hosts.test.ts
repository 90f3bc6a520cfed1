import { createManualClock } from '@tutti/chassis/testing'
import type { LoadableModels } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { loadFailed, pollFailed } from '@tutti/front-door'
import t from 'tap'
import { Watchers } from '../watchers.ts'
import { RemoteHosts } from './remote-hosts.ts'

type Answer = (question: string, argument: unknown) => Promise<unknown>

const OPEN: LoadableModels = { names: [], isOpen: true, awaited: [] }

/** Steps by name: what they load on request, and what they answer. */
function open(steps: Readonly<Record<string, { loadable: LoadableModels; answer: Answer }>>) {
  const asked: string[] = []
  const offered = new Set<string>()
  const there = new Set(Object.keys(steps))
  const stale = new Set<string>()
  const watchers = new Watchers()
  const clock = createManualClock()
  const hosts = new RemoteHosts({
    isCurrent: (replica) => !stale.has(replica),
    peers: Promise.resolve({
      ask: async (replica, question, argument) => {
        asked.push(`${replica} ${question}`)
        const step = steps[replica]
        if (step === undefined) throw new ServeError('STEP_UNAVAILABLE', 'gone')
        return step.answer(question, argument)
      },
    }),
    router: {
      loadable: () =>
        new Map(
          Object.entries(steps).flatMap(([name, { loadable }]) =>
            there.has(name) ? [[name, loadable] as const] : [],
          ),
        ),
      offers: (replica, _model, wanted) => offered.has(`${replica} ${wanted?.join() ?? ''}`),
      until: (isSo, o) => watchers.until(isSo, { ...o, clock }),
    },
  })
  return { hosts, asked, offered, there, stale, watchers, clock }
}

const yes: Answer = async () => []

function no(error: ServeError): Answer {
  return async () => {
    throw error
  }
}

const ABSENT = pollFailed('m', new ServeError('MODEL_NOT_FOUND', 'no directory'))

await t.test('a model is loaded at all steps that may serve it', async (t) => {
  const { hosts, asked } = open({
    a: { loadable: OPEN, answer: yes },
    b: { loadable: { names: ['m'], isOpen: false, awaited: [] }, answer: yes },
    c: { loadable: { names: ['other'], isOpen: false, awaited: [] }, answer: yes },
    d: { loadable: { names: [], isOpen: false, awaited: ['m'] }, answer: yes },
  })
  await hosts.load('m')
  t.same(asked.toSorted(), ['a load', 'b load', 'd load'])
  t.same(await hosts.names(), ['m', 'other'])
  await t.rejects(open({}).hosts.load('m'), {
    code: 'INTERNAL',
    message:
      "failed to load 'm', failed to poll from model repository: no step that is there may serve it; want one with --model-control-mode=explicit and, where it has --model, this model",
  })
})

await t.test('a load is answered when this router has heard of it, or after a while', async (t) => {
  const { hosts, offered, stale, watchers, clock } = open({
    a: { loadable: OPEN, answer: async () => [[1, 'r']] },
  })
  let isDone = false
  const loaded = hosts.load('m').then(() => (isDone = true))
  await new Promise(setImmediate)
  stale.add('a')
  offered.add('a 1,r')
  stale.delete('a')
  t.equal(isDone, false)
  watchers.look()
  await loaded
  offered.clear()
  const unheard = hosts.load('m')
  while (clock.pending === 0) await new Promise(setImmediate)
  clock.advance(5000)
  await unheard
})

await t.test('who fails is named, unless all fail alike', async (t) => {
  const broken = loadFailed('m', 'version 1 is at UNAVAILABLE state: Internal: x;')
  const all = open({
    a: { loadable: OPEN, answer: no(broken) },
    b: { loadable: OPEN, answer: no(broken) },
  })
  await t.rejects(all.hosts.load('m'), { message: broken.message })
  const one = open({
    a: { loadable: OPEN, answer: yes },
    b: { loadable: OPEN, answer: no(broken) },
  })
  await t.rejects(one.hosts.load('m'), {
    code: 'INVALID_ARGUMENT',
    message:
      "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: x; (step 'b'; 1 of 2 steps failed)\n",
    details: { replica: 'b' },
  })
})

await t.test('a step that takes anything need not have the model', async (t) => {
  const has = { names: ['m'], isOpen: true, awaited: [] }
  await open({
    a: { loadable: has, answer: yes },
    b: { loadable: OPEN, answer: no(ABSENT) },
  }).hosts.load('m')
  const nobody = open({
    a: { loadable: OPEN, answer: no(ABSENT) },
    b: { loadable: OPEN, answer: no(ABSENT) },
  })
  await t.rejects(nobody.hosts.load('m'), { message: ABSENT.message })
  const gone = open({
    a: { loadable: has, answer: no(ABSENT) },
    b: { loadable: OPEN, answer: yes },
  })
  await t.rejects(gone.hosts.load('m'), { message: /no directory \(step 'a'; 1 of 2/ })
})

await t.test('an unload goes to all steps; one that went meanwhile is no failure', async (t) => {
  const { hosts, there, asked } = open({
    a: { loadable: OPEN, answer: yes },
    b: {
      loadable: OPEN,
      answer: async () => {
        there.delete('b')
        throw new ServeError('STEP_LOST', 'gone')
      },
    },
  })
  await hosts.unload('m')
  t.same(asked, ['a unload', 'b unload'])
  const refusing = open({
    a: { loadable: OPEN, answer: no(new ServeError('OVERLOADED', 'full')) },
  })
  await t.rejects(refusing.hosts.unload('m'), { code: 'RESOURCE_EXHAUSTED' })
})

await t.test('an answer that is none is refused', async (t) => {
  for (const answer of [null, 5, [5], [['1', 'r']], [[1, 2]]]) {
    const { hosts } = open({ a: { loadable: OPEN, answer: async () => answer } })
    await t.rejects(hosts.load('m'), { code: 'INVALID_ARGUMENT', message: /want a list/ })
  }
})
