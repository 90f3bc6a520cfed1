import { setTimeout as sleep } from 'node:timers/promises'
import { InferenceClient } from '@tutti/protocol/client'
import { askSmall } from '../attacks/held-calls.ts'
import { ask, describe, type Outcome } from '../processes/asking.ts'
import { identityQuestion, problemOf, type Question } from '../processes/questions.ts'
import { restCall } from '../rest-call.ts'
import { inferPath, restOutputs } from '../rest-infer.ts'
import type { Target } from '../serving.ts'
import { askRest } from './rest-clients.ts'

const THINK_MS = 50
const LARGE_BYTES = 2 ** 20
/** As JSON more than 256 KiB, which is parsed on a thread of its own. */
const JSON_BYTES = 2 ** 17
const REFUSALS = new Set(['RESOURCE_EXHAUSTED'])

/** How the calls of one kind went. */
export interface Watched {
  readonly right: number
  /** Calls that were refused as overload. */
  readonly refused: number
  /** Every other failure, and how often it came. */
  readonly problems: Readonly<Record<string, number>>
  readonly latenciesMs: readonly number[]
}

type Watches = Record<string, () => Promise<Outcome>>

const RIGHT: Outcome = { kind: 'right' }
const wrong = (what: string): Outcome => ({ kind: 'wrong', what })

async function askLive(port: number, path: string): Promise<Outcome> {
  const { status, body } = await restCall(port, 'GET', path)
  return status === 200 ? RIGHT : wrong(`HTTP ${status} ${body.toString()}`)
}

/** Makes the requests of a client that does no harm, to a server that serves the model of `question`. */
function watches(target: Target, client: InferenceClient, question: Question): Watches {
  const large = identityQuestion(LARGE_BYTES)
  return {
    'health and metadata, gRPC': async () => {
      const problems = await askSmall(target.grpcPort)
      return problems.length === 0 ? RIGHT : wrong(problems.join(', '))
    },
    'health, REST': () => askLive(target.httpPort, '/v2/health/ready'),
    probes: () => askLive(target.metricsPort, '/livez'),
    'small, gRPC': () => ask(client, question),
    'small, REST': () => askRest(target, question),
    '1 MiB, gRPC': () => ask(client, large),
    '1 MiB, REST': () => askRest(target, large),
    'long JSON, REST': () => askJson(target, identityQuestion(JSON_BYTES)),
  }
}

/** Asks with all numbers as JSON. */
async function askJson({ httpPort }: Target, question: Question): Promise<Outcome> {
  const { modelName, inputs } = question.request
  const texts = inputs.map(({ name, datatype, shape, data }) => {
    const values = [...new Float32Array(Uint8Array.from(data).buffer)]
    return { name, datatype, shape, data: values }
  })
  const body = JSON.stringify({ parameters: { binary_data_output: true }, inputs: texts })
  const answer = await restCall(httpPort, 'POST', inferPath(modelName), { body })
  if (answer.status === 503) {
    return { kind: 'error', code: 'RESOURCE_EXHAUSTED', reason: '', message: '', details: {} }
  }
  const what = problemOf(question, restOutputs(answer).get(question.output))
  return what === undefined ? RIGHT : wrong(what)
}

/** Starts a client that asks one thing after the other, of each kind in a loop of its own, until it is stopped. */
export function startWatching(target: Target, question: Question) {
  const client = new InferenceClient({ address: `127.0.0.1:${target.grpcPort}` })
  const all = new Map<string, Mutable>()
  const state = { isStopped: false }
  const run = async (kind: string, askOnce: () => Promise<Outcome>): Promise<void> => {
    const own: Mutable = { right: 0, refused: 0, problems: {}, latenciesMs: [] }
    all.set(kind, own)
    while (!state.isStopped) {
      const beganMs = performance.now()
      const outcome = await askOnce().catch((error: unknown) => wrong(String(error)))
      note(own, outcome, performance.now() - beganMs)
      await sleep(THINK_MS)
    }
  }
  const loops = Object.entries(watches(target, client, question)).map(([kind, once]) =>
    run(kind, once),
  )
  return {
    /** How each kind went so far. */
    watched: (): ReadonlyMap<string, Watched> => all,
    stop: async (): Promise<void> => {
      state.isStopped = true
      await Promise.all(loops)
      client.close()
    },
  }
}

interface Mutable {
  right: number
  refused: number
  readonly problems: Record<string, number>
  readonly latenciesMs: number[]
}

function note(own: Mutable, outcome: Outcome, tookMs: number): void {
  if (outcome.kind === 'right') {
    own.right += 1
    own.latenciesMs.push(tookMs)
  } else if (outcome.kind === 'error' && REFUSALS.has(outcome.code)) own.refused += 1
  else {
    const what = describe(outcome).slice(0, 300)
    own.problems[what] = (own.problems[what] ?? 0) + 1
  }
}
