import { openCallScope, type Tracing } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { PART_HOST } from '@tutti/graph'
import { emptyModelConfig } from '@tutti/model-config'
import type {
  ExecuteOptions,
  FindExecutor,
  InferRequest,
  ModelTarget,
  RequestObserver,
  ResponseSink,
} from '@tutti/tensor'
import { Lender, RecordedResponses, requestContext } from '@tutti/tensor/testing'
import { revisionKey } from '@tutti/transport'
import { PartRunner } from '../../requests/part-runner.ts'
import { ReplicaExecutors } from '../replica-executors.ts'
import { settle } from '../requests.ts'
import { testRouter } from '../test-router.ts'
import { toModelConfig, toSpec } from './print-graph.ts'
import {
  answerOf,
  keyOf,
  scriptOf,
  toError,
  toTensor,
  toValue,
  type Values,
} from './scripted-models.ts'
import type { GraphSketch, ModelSketch, RequestSketch } from './sketch.ts'

/** Steps of the clock within which everything has ended. */
const MAX_TURNS = 10_000

const TIMES = {
  queueNs: 1,
  computeInputNs: 1,
  computeInferNs: 1,
  computeOutputNs: 1,
  transferNs: 0,
}

/** A router that serves a drawn graph, over models that answer as their scripts say, on a clock that goes from timer to timer. */
export function createGraphRig(
  graph: GraphSketch,
  o: {
    readonly maxBytes?: number
    readonly tracing?: Tracing
    /** Whether replicas run parts of graphs. */
    readonly runsParts?: boolean
    /** Observes the steps of all requests. */
    readonly observer?: RequestObserver
  } = {},
) {
  const clock = createManualClock()
  const lender = new Lender()
  const executions = new Map<string, number>()
  const problems: string[] = []
  let ranParts = 0
  const bytes = { held: 0 }
  const replicas = new ReplicaExecutors()
  const models = new Map(graph.models.map((model) => [model.name, model]))
  const { router, directory, metrics } = testRouter({
    clock,
    replicas,
    ...(o.tracing && { tracing: o.tracing }),
    random: () => 0.5,
    manifests: Object.fromEntries(graph.ensembles.map((one) => [one.name, toSpec(one)])),
  })
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  const described = graph.models.map((model) => {
    return { name: model.name, config: toModelConfig(model), labels: {}, versions, reason: '' }
  })
  const find: FindExecutor = ({ model: name }) => ({
    execute: (request, sink, options) => {
      const model = models.get(name)
      if (model === undefined) throw new Error(`no model ${name}`)
      const played = { graph, model, clock, lender, executions, problems }
      try {
        new Execution(played, request, sink).begin(options)
      } catch (error) {
        problems.push(`${name} cannot read its inputs: ${ServeError.from(error).message}`)
        sink.fail(ServeError.from(error), 'no')
      }
    },
  })
  const configOf = ({ model }: ModelTarget) =>
    described.find(({ name }) => name === model)?.config ?? emptyModelConfig()
  const { tracing } = o
  // Budgets of retries count in each process, and the interpreter has one: both replicas are of one process.
  const parts = new PartRunner({
    replica: 'a',
    executor: find,
    configOf,
    clock,
    tracing,
    random: () => 0.5,
  })
  for (const replica of ['a', 'b']) {
    replicas.set(replica, (target) =>
      target.model === PART_HOST.model
        ? {
            execute: (request, sink, options) => {
              ranParts += 1
              parts.execute(request.program ?? '', request, sink, options)
            },
          }
        : find(target),
    )
    router.view.describe({ replica, models: described }, { statistics: async () => [] })
    const served = described.map(({ name: model }) => ({ model, version: 1, revision: 'r' }))
    if (o.runsParts === true) directory.announce({ replica }, [...served, PART_HOST])
  }

  const charge = (more: number): void => {
    if (more > 0 && bytes.held + more > (o.maxBytes ?? Number.POSITIVE_INFINITY)) {
      throw new ServeError('OVERLOADED', 'no memory')
    }
    bytes.held += more
  }

  /** Answers a request, and goes on until no timer is left. */
  async function ask(asked: RequestSketch): Promise<RecordedResponses> {
    const { deadlineMs } = asked
    const remaining = deadlineMs === undefined ? {} : { remainingMs: deadlineMs }
    const scope = openCallScope({ clock, memory: { charge }, ...remaining })
    const sink = new RecordedResponses()
    const inputs = [...asked.inputs].map(([name, value]) => toTensor(name, value))
    const { tensors, retain, end } = lender.lend(inputs)
    let hasEnded = false
    const close = (): void => {
      if (hasEnded) problems.push('a second end')
      hasEnded = true
      end()
    }
    const passed: ResponseSink = {
      send: (response) => {
        sink.send(response)
        if (response.final) close()
      },
      fail: (...failure) => {
        sink.fail(...failure)
        close()
      },
    }
    const parameters = [...asked.parameters].map(
      ([name, value]) => [name, { kind: 'string', value }] as const,
    )
    const request: InferRequest = {
      context: requestContext({ parameters: new Map(parameters) }),
      inputs: tensors,
      retain,
      requestedOutputs: asked.outputs,
    }
    const context = { ...scope.context, ...(o.observer && { observer: o.observer }) }
    router.resolve(graph.top.name, '').execute(request, passed, context)
    await run(() => {
      if (!hasEnded) scope.cancel(new ServeError('CANCELLED', 'left'))
    })
    if (!hasEnded) problems.push('no end')
    scope.close()
    await run(() => {})
    return sink
  }

  /** Goes from timer to timer. @param leave - called when there is none. */
  async function run(leave: () => void): Promise<void> {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      // Waits between attempts are promises.
      await settle()
      const { nextMs } = clock
      if (nextMs !== undefined) clock.advance(nextMs)
      else if (turn > 0) break
    }
    leave()
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      await settle()
      const { nextMs } = clock
      if (nextMs === undefined) return
      clock.advance(nextMs)
    }
    problems.push('timers without end')
  }

  const keys = graph.models.map(({ name: model }) =>
    revisionKey({ model, version: 1, revision: 'r' }),
  )
  return {
    clock,
    ask,
    executions,
    metrics,
    /** Number of requests for parts. */
    get ranParts(): number {
      return ranParts
    },
    /** Lists what is left of requests: nothing, once all have ended. */
    get left(): readonly string[] {
      const members = keys.flatMap((key) => directory.places.byRevision.get(key) ?? [])
      const counts = {
        calls: members.reduce((sum, { inFlight, workUs }) => sum + inFlight + workUs, 0),
        loans: lender.open,
        tensors: router.memory.count,
        bytes: router.memory.bytesInUse,
        charged: bytes.held,
        timers: clock.pending,
      }
      const left = Object.entries(counts).filter(([, count]) => count !== 0)
      return [...problems, ...left.map(([name, count]) => `${count} ${name}`)]
    },
  }
}

interface Played {
  readonly graph: GraphSketch
  readonly model: ModelSketch
  readonly clock: ReturnType<typeof createManualClock>
  readonly lender: Lender
  readonly executions: Map<string, number>
  readonly problems: string[]
}

/** One execution of a model, as its script says. */
class Execution {
  readonly #played: Played
  readonly #request: InferRequest
  readonly #sink: ResponseSink
  readonly #key: string
  #stopTimer: (() => void) | undefined
  #giveBack: (() => void) | undefined
  #isCancelled = false
  #hasEnded = false

  constructor(played: Played, request: InferRequest, sink: ResponseSink) {
    this.#played = played
    this.#request = request
    this.#sink = sink
    this.#key = keyOf(played.model, this.#read(), this.#parameters)
  }

  begin({ signal }: ExecuteOptions): void {
    const { graph, model, executions } = this.#played
    const n = executions.get(this.#key) ?? 0
    executions.set(this.#key, n + 1)
    const { responses, end, isJoined } = scriptOf(graph, model, this.#key, n)
    signal.addEventListener('abort', () => this.#cancelled(ServeError.from(signal.reason)), {
      once: true,
    })
    const turns = responses.map(({ afterMs, index }, i) => {
      const isLast = isJoined && i === responses.length - 1
      return [afterMs, () => this.#answer(index, isLast)] as const
    })
    const { failure, afterMs } = end
    const finish = (): void => {
      if (failure !== undefined) this.#fail(toError(model, failure), failure.executed)
      else this.#send(responses.length, new Map(), true)
    }
    this.#play(isJoined && failure === undefined ? turns : [...turns, [afterMs, finish]], 0)
  }

  #play(turns: readonly (readonly [atMs: number, act: () => void])[], sinceMs: number): void {
    const [turn, ...others] = turns
    if (turn === undefined || this.#hasEnded) return
    const [atMs, act] = turn
    const go = (): void => {
      act()
      this.#play(others, atMs)
    }
    if (atMs === sinceMs) go()
    else if (atMs < Number.POSITIVE_INFINITY)
      this.#stopTimer = this.#played.clock.setTimer(atMs - sinceMs, go)
  }

  get #parameters(): ReadonlyMap<string, string> {
    const { parameters } = this.#request.context
    return new Map([...parameters].map(([name, { value }]) => [name, String(value)]))
  }

  #read(): Values {
    return new Map(this.#request.inputs.map((tensor) => [tensor.name, toValue(tensor)]))
  }

  /** A model reads its inputs as long as it executes. */
  #answer(index: number, final: boolean): void {
    const { model } = this.#played
    const inputs = this.#read()
    const parameters = this.#parameters
    if (keyOf(model, inputs, parameters) !== this.#key) {
      this.#played.problems.push(`the inputs of ${model.name} were overwritten`)
    }
    const { requestedOutputs: wanted } = this.#request
    const outputs = [...answerOf(model, { inputs, parameters }, index)].filter(
      ([name]) => wanted.length === 0 || wanted.includes(name),
    )
    this.#send(index, new Map(outputs), final)
  }

  #send(index: number, outputs: Values, final: boolean): void {
    if (this.#hasEnded) return
    const tensors = [...outputs].map(([name, value]) => toTensor(name, value))
    if (final) this.#end()
    const lent = this.#played.lender.sink(this.#sink)
    lent.send({ index, final, outputs: tensors, parameters: new Map(), times: TIMES })
  }

  #fail(...[error, executed]: Parameters<ResponseSink['fail']>): void {
    if (this.#hasEnded) return
    this.#end()
    this.#sink.fail(error, executed, TIMES)
  }

  #cancelled(error: ServeError): void {
    if (this.#hasEnded || this.#isCancelled) return
    this.#isCancelled = true
    const { model } = this.#played
    const isOver = model.reliability === 'hanging' || !model.isDeaf
    if (isOver) this.#fail(error, 'maybe')
    else this.#giveBack = this.#request.retain?.()
  }

  #end(): void {
    this.#hasEnded = true
    this.#stopTimer?.()
    this.#giveBack?.()
  }
}
