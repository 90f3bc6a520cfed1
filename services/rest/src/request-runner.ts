import {
  type CallScope,
  LoopTurns,
  openCallScope,
  requestFields,
  type TraceParent,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Exchange } from '@tutti/http'
import { MAX_CONTROL_BYTES, readTrace, STEPS_HEADER, tellSteps } from '@tutti/serving'
import { errorReply, type RestReply } from './answers/rest-reply.ts'
import { writeMore } from './answers/write-more.ts'
import { parseTimeout, RestCall, type RestCallOptions } from './call/rest-call.ts'
import type { RestRoute } from './call/rest-route.ts'
import { REST_EVENTS } from './rest-events.ts'
import type { CompiledRestOptions } from './rest-options.ts'

type Parameters = RestCallOptions['parameters']

/** One request that is in flight. */
interface InFlight {
  readonly scope: CallScope
  readonly call: RestCall
  /** Its place in the list, which the last one takes when it leaves. */
  at: number
}

/** Runs requests: gives each its scope, writes its one answer, and knows which are in flight. */
export class RequestRunner {
  readonly #options: CompiledRestOptions
  readonly #turns = new LoopTurns()
  readonly #inFlight: InFlight[] = []
  readonly #idle: (() => void)[] = []
  #isStopping = false

  constructor(o: CompiledRestOptions) {
    this.#options = o
  }

  /** Refuses requests from now on with SERVER_STOPPING, except those of the admission class `none`, such as health. */
  stop(): void {
    this.#isStopping = true
  }

  /** Cancels all requests in flight, which are answered with SERVER_STOPPING. */
  failAll(): void {
    for (const { scope } of this.#inFlight.slice()) scope.cancel(serverStopping())
  }

  /** Ends the JSON thread. A body that it parses fails. */
  close(): Promise<void> {
    return this.#options.json.close()
  }

  /** The names of the connections on which a request is in work. */
  busyConnections(): Set<string> {
    const busy = this.#inFlight.filter(({ call }) => call.isInWork)
    return new Set(busy.map(({ call }) => call.connection))
  }

  /** Calls back when no request is in flight, at once if there is none. */
  whenIdle(callback: () => void): void {
    if (this.#inFlight.length === 0) callback()
    else this.#idle.push(callback)
  }

  /** Answers a request with what the route says. Never rejects. */
  async run(route: RestRoute, parameters: Parameters, exchange: Exchange): Promise<void> {
    let call: RestCall | undefined
    const { model } = parameters
    const trace = readTrace(exchange.head.headers)
    const observed = isInference(route) ? this.#options.requests.open(trace, model) : undefined
    try {
      if (this.#isStopping && route.admission !== 'none') throw serverStopping()
      call = this.#open(route, { parameters, trace, observed }, exchange)
      const reply = await route.answer(call)
      this.reply(exchange, reply)
      // The end of others is that of their last part, or the client's.
      if (reply.more === undefined && !exchange.isOver) observed?.ended()
    } catch (error) {
      const failure = ServeError.from(error)
      this.#logFailure(failure, exchange, call)
      // Before the answer, with whose last byte a request ends too.
      observed?.ended(failure)
      this.reply(exchange, errorReply(failure))
    }
  }

  #open(
    { path: route, group, admission: admissionClass }: RestRoute,
    of: Pick<RestCallOptions, 'parameters' | 'observed'> & {
      readonly trace: TraceParent | undefined
    },
    exchange: Exchange,
  ): RestCall {
    const { clock, select, admission, json } = this.#options
    const maxInputBytes =
      admissionClass === 'request'
        ? this.#options.maxInputBytes
        : Math.min(MAX_CONTROL_BYTES, this.#options.maxInputBytes)
    const { socket } = exchange
    const { headers, rawHeaders, target: path } = exchange.head
    const restricted = group === 'page' ? undefined : group
    const selected = select({ headers, rawHeaders, path, route, group: restricted, socket })
    const asked = headers[STEPS_HEADER]
    const backend = asked === undefined ? selected : tellSteps(selected, asked)
    const scope = openCallScope({
      clock,
      remainingMs: parseTimeout(exchange),
      trace: of.trace,
    })
    const turns = this.#turns
    const call = new RestCall({
      exchange,
      ...of,
      backend,
      scope,
      admission,
      maxInputBytes,
      json,
      turns,
    })
    const entry = { scope, call, at: this.#inFlight.length }
    this.#inFlight.push(entry)
    exchange.whenOver((isAnswered) => this.#over(entry, isAnswered))
    return call
  }

  /** Tensors of the request and of the answer are held until here: the last byte is out, or the client has left. */
  #over({ scope, call, at }: InFlight, isAnswered: boolean): void {
    const error = isAnswered ? undefined : new ServeError('CANCELLED', 'the client went away')
    call.close(error)
    if (error !== undefined) scope.cancel(error)
    scope.close()
    const last = this.#inFlight.pop()
    if (last !== undefined && last.scope !== scope) {
      last.at = at
      this.#inFlight[at] = last
    }
    if (this.#inFlight.length > 0) return
    for (const notify of this.#idle.splice(0)) notify()
  }

  /** Writes an answer. */
  reply(exchange: Exchange, reply: RestReply): void {
    const { more, parts, byteLength } = reply
    if (exchange.hasAnswered || exchange.isOver) return void more?.return(undefined)
    const { clock, writeTimeoutMs: timeoutMs } = this.#options
    if (more !== undefined) {
      exchange.begin(reply)
      return void writeMore(exchange, more, { clock, timeoutMs })
    }
    exchange.answer(reply, parts, byteLength)
    // Most answers are out by now.
    if (exchange.isOver) return
    exchange.whenOver(clock.setTimer(timeoutMs, () => exchange.destroy()))
  }

  #logFailure(error: ServeError, { head }: Exchange, call?: RestCall): void {
    const { log } = this.#options
    const fields = () => ({
      path: head.target,
      ...requestFields(call?.requestId ?? '', call?.context.trace),
      error,
    })
    if (error.reason === 'INTERNAL') log.error(REST_EVENTS.requestFailed, fields())
    else if (log.isDebug) log.debug(REST_EVENTS.requestFailed, fields())
  }
}

function serverStopping(): ServeError {
  return new ServeError('SERVER_STOPPING', 'Server exiting')
}

function isInference({ group, admission }: RestRoute): boolean {
  return group === 'inference' || (group === 'page' && admission === 'request')
}
