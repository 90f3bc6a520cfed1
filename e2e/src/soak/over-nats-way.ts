import { cp, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { sendBadRequests } from '../hostile.ts'
import type { Member } from '../processes/harness.ts'
import type { HistoryEvent } from '../processes/history-check.ts'
import { type Cluster, type Place, SERVED, startCluster } from '../processes/history-cluster.ts'
import { faultDeck, type PlannedFault } from '../processes/history-faults.ts'
import {
  askShift,
  REVISIONS,
  SHIFTS,
  type Shifted,
  shiftEnsembles,
  shiftRepository,
} from '../processes/revisions-models.ts'
import { mark } from '../processes/seen.ts'
import { BASIC } from '../temp-repository.ts'
import { heldByNats, heldNow, INSPECTED } from './held.ts'
import { askAllKinds, KINDS_ASKED, PYTHON_FLAGS } from './model-kinds.ts'
import { watchRelays } from './relay-watch.ts'
import { beRude } from './rude-clients.ts'
import { addUp } from './soak-report.ts'
import { askMeanwhile, REQUESTS, SOAK_MODELS, soakRepository, type Way } from './way.ts'

/** Counts of one round. */
const FAULTS = 3
const CALM_REQUESTS = 100
const BAD_REQUESTS = 200
const RUDE_TIMES = 2

/** Errors that a change of files may cost a request. */
const TYPED = new Set(
  ['STEP_LOST', 'STEP_UNAVAILABLE', 'REVISION_GONE'].map((reason) => `UNAVAILABLE ${reason}`),
)

const POLL = ['--model-control-mode=poll', '--repository-poll-secs=1']
const SERVED_HERE = [...SERVED, 'ens_py_add_sub', 'ens_repeat', 'ensemble_model', 'ens_shift']

/**
 * Routers and steps around one broker. The first of each lives as long as the soak; the others are killed, drained and replaced, and
 * so is the broker. The files of a model change under load.
 */
export async function startOverNats(t: Test): Promise<Way> {
  const repository = await shiftingRepository(t)
  const repositories = [repository]
  const cluster = await startCluster(t, {
    routers: 2,
    steps: 2,
    router: { repositories, flags: POLL, env: INSPECTED },
    step: {
      repositories,
      models: [...SOAK_MODELS.filter((model) => !model.startsWith('ens')), 'shift'],
      flags: [...POLL, ...PYTHON_FLAGS],
      env: INSPECTED,
    },
    served: SERVED_HERE,
    broker: { config: 'http: "127.0.0.1:-1"' },
  })
  const [router, step] = [placeOf(cluster.routers, 0), placeOf(cluster.steps, 0)]
  const mortal = { routers: cluster.routers.slice(1), steps: cluster.steps.slice(1) }
  const state: State = { fault: 0, revision: 'one' }
  const nextFault = (): number => (state.fault += 1)
  const round: Way['round'] = async (test, { random, seed }) => {
    const from = [router, step].map(({ member }) => mark(member.process))
    const deal = faultDeck({ ...cluster, ...mortal }, random)
    const asked = await askMeanwhile(cluster.routers, seed, (record, ended) =>
      strikeUnderLoad({ cluster, deal, nextFault, record, ended }),
    )
    const problems = [...asked.problems, ...(await changeFiles(cluster, repository, state))]
    const rude = Promise.all([router, step].map(({ member }) => beRude(member, random, RUDE_TIMES)))
    await sendBadRequests(test, router.member, { count: BAD_REQUESTS, seed })
    const rudeClients = await rude
    const kinds = (): Promise<readonly string[]> => askAllKinds(router.member, seed % 100_000)
    problems.push(...(await askInCalm(cluster, kinds)))
    if (problems.length > 0) {
      // Lines about what they saw tell a fault of theirs from a machine that gave the broker no time.
      problems.push(...[router, step].flatMap(({ member }, i) => seenBy(member, from[i] ?? 0)))
    }
    return {
      done: {
        ...asked.done,
        'changes of a model’s files': 1,
        'bad requests': BAD_REQUESTS,
        'rude clients': rudeClients.reduce((total, count) => total + count, 0),
        'asked of Python and words': KINDS_ASKED,
      },
      problems,
    }
  }
  return {
    round,
    held: async () =>
      addUp([
        await heldNow('router', router.member.process),
        await heldNow('step', step.member.process),
        await heldByNats(monitoringPort(cluster)),
      ]),
  }
}

async function strikeUnderLoad(o: {
  readonly cluster: Cluster
  readonly deal: ReturnType<typeof faultDeck>
  readonly nextFault: () => number
  readonly record: (event: HistoryEvent) => void
  readonly ended: () => number
}): Promise<void> {
  const { cluster, deal, nextFault, record, ended } = o
  const untilAsked = (requests: number): Promise<unknown> =>
    until('clients go on', () => ended() >= requests)
  const relays = watchRelays({ record, nextFault, settled: cluster.settled })
  try {
    for (let i = 0; i < FAULTS; i += 1) {
      await untilAsked(ended() + CALM_REQUESTS)
      await strike(cluster, deal(undefined), nextFault(), record)
    }
    await untilAsked(REQUESTS)
  } finally {
    await relays.stop()
  }
}

/** Asks again if the relays stood still meanwhile: no fault is there that would explain an error. */
async function askInCalm(
  { settled }: Pick<Cluster, 'settled'>,
  ask: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  let held = 0
  const nextFault = (): number => (held += 1)
  const relays = watchRelays({ record: () => {}, nextFault, settled })
  const problems = await ask()
  await relays.stop()
  return held > 0 && problems.length > 0 ? await askInCalm({ settled }, ask) : problems
}

/** Makes the repository that is soaked, with a model whose files change and the ensemble of it. */
async function shiftingRepository(t: Test): Promise<string> {
  const repository = await soakRepository(t)
  const ensembles = await shiftEnsembles(t)
  await cp(join(ensembles, 'ens_shift'), join(repository, 'ens_shift'), { recursive: true })
  const shift = join(await shiftRepository(t, 'one'), 'shift')
  await cp(shift, join(repository, 'shift'), { recursive: true })
  return repository
}

interface State {
  fault: number
  revision: 'one' | 'three'
}

function placeOf(places: readonly Place[], index: number): Place {
  const place = places[index]
  if (place === undefined) throw new Error(`no place ${index} of ${places.length}`)
  return place
}

async function strike(
  cluster: Cluster,
  planned: PlannedFault | undefined,
  fault: number,
  record: (event: HistoryEvent) => void,
): Promise<void> {
  if (planned === undefined) throw new Error('no fault is left to strike')
  const { kind, at } = planned
  const before = at === 'broker' ? undefined : { ...at }
  const router = at !== 'broker' && at.role === 'router' ? { router: at.name } : {}
  record({ type: 'struck', fault, kind, ...router })
  await planned.run()
  await cluster.settled()
  record({ type: 'settled', fault })
  if (before !== undefined && at !== 'broker' && before.member !== at.member) {
    await before.proxy.close()
    // Hundreds of members come and go, and nobody reads later what they wrote.
    before.member.process.lines.length = 0
  }
}

/** Finds what a member wrote of the broker and of others. */
function seenBy({ process, id }: Member, from: number): readonly string[] {
  const lines = process.lines.slice(from).filter((line) => SIGHTS.test(line))
  return lines.map((line) => `${id} wrote ${line}`)
}

const SIGHTS = /"(?:broker disconnected|broker connected|member is suspect|member is gone)"/

/** Exchanges the files of a model under its name, and asks until its new ones answer. No request may see both. */
async function changeFiles(
  cluster: Cluster,
  repository: string,
  state: State,
): Promise<readonly string[]> {
  const members = cluster.routers.map(({ member }) => member)
  const clients = members.map(clientOf)
  state.revision = state.revision === 'one' ? 'three' : 'one'
  const file = join(repository, 'shift', '1', 'model.onnx')
  await cp(join(BASIC, 'versioned', String(REVISIONS[state.revision]), 'model.onnx'), `${file}~`)
  await rename(`${file}~`, file)
  const ends = new Set<Shifted>()
  let seed = 0
  await until(`every router shifts by revision ${state.revision}`, async () => {
    const got = await Promise.all(
      clients.map((client) => askShift(client, 'ens_shift', { seed: (seed += 1) })),
    )
    for (const one of got) ends.add(one)
    return got.every((one) => one === REVISIONS[state.revision] * SHIFTS)
  })
  for (const client of clients) client.close()
  const right = new Set<Shifted>([REVISIONS.one * SHIFTS, REVISIONS.three * SHIFTS])
  const strange = [...ends].filter((end) => !right.has(end) && !TYPED.has(String(end)))
  return strange.map((end) => `ens_shift while its files changed: ${end}`)
}

function clientOf({ grpcPort }: Member): InferenceClient {
  return new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
}

/** Another one after each start of the broker. */
function monitoringPort({ harness }: Cluster): number {
  const text = harness.broker.lines.join('\n')
  return Number(/Starting http monitor on 127\.0\.0\.1:(\d+)/.exec(text)?.[1])
}
