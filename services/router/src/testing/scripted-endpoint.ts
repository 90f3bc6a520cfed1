import { ServeError } from '@tutti/errors'
import type {
  ForeignMember,
  OpenRouterEndpointOptions,
  Question,
  RouterEndpoint,
} from '@tutti/transport'
import type { Revisions } from '../view/step-members.ts'
import { ReplicaExecutors } from './replica-executors.ts'

/** How a scripted step answers a question. */
export type Answer = (question: Question, argument: unknown) => Promise<unknown>

/** A router's endpoint at the broker, driven by a test: steps come, answer questions and go. */
export class ScriptedRouterEndpoint implements RouterEndpoint {
  isConnected = true
  /** While it is not connected. */
  awayForMs = Infinity
  /** Beside the broker. */
  obstaclesBeside: readonly string[] = []
  direct: readonly string[] = []
  routers: readonly string[] = []
  readonly transport = {
    broker: { isUp: true, connects: 1, sentBytes: { control: 0, data: 0 } },
    members: new Map(),
    foreign: 0,
    direct: undefined,
  }
  foreign: readonly ForeignMember[] = []
  readonly events: string[] = []
  /** The executors of the steps. */
  readonly executors = new ReplicaExecutors()
  readonly executor = this.executors.executor
  readonly #answers = new Map<string, Answer>()
  #options: OpenRouterEndpointOptions | undefined

  get awayMs(): number {
    return this.isConnected ? 0 : this.awayForMs
  }

  get obstacles(): readonly string[] {
    return [...(this.isConnected ? [] : ['the broker is not connected']), ...this.obstaclesBeside]
  }

  /** To be given as `openEndpoint`. */
  readonly open = (options: OpenRouterEndpointOptions): Promise<RouterEndpoint> => {
    this.#options = options
    this.events.push('joined')
    for (const tell of this.#beforeJoin.splice(0)) tell(options)
    return Promise.resolve(this)
  }

  readonly #beforeJoin: ((options: OpenRouterEndpointOptions) => void)[] = []

  /** A step announces itself, as soon as the router has joined. */
  announce(replica: string, revisions: Revisions, answer: Answer): void {
    this.#answers.set(replica, answer)
    const tell = (options: OpenRouterEndpointOptions): void => {
      const served = revisions.map(([model, version, revision]) => ({ model, version, revision }))
      options.directory.announce({ replica }, served)
      options.stepChanged(replica, revisions)
    }
    if (this.#options === undefined) this.#beforeJoin.push(tell)
    else tell(this.#options)
  }

  remove(replica: string): void {
    this.#options?.directory.remove(replica)
    this.#options?.stepGone(replica, new ServeError('STEP_UNAVAILABLE', `${replica} is gone`))
  }

  async ask(endpoint: string, question: Question, argument: unknown): Promise<unknown> {
    const answer = this.#answers.get(endpoint)
    if (answer === undefined)
      throw new ServeError('STEP_UNAVAILABLE', `${endpoint} does not answer`)
    return answer(question, argument)
  }

  async drain(): Promise<void> {
    this.events.push('drained')
  }

  async close(): Promise<void> {
    this.events.push('left')
  }
}
