import type { CancelSignal, ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'
import type { Executor, FindExecutor, ModelTarget } from '@tutti/tensor'
import type { DirectCounts } from './direct/direct-links.ts'
import type { DirectOptions } from './direct/direct-sockets.ts'
import type { ForeignMember } from './members/foreign-members.ts'

/** How a process reaches the broker. Everything here comes from flags or settings of the executables. */
export interface BrokerOptions {
  /** One or several, `nats://host:4222` or `tls://host:4222`. */
  readonly servers: readonly string[]
  /** First token of every subject, so that installations share a broker. Default `tutti`. */
  readonly prefix: string
  /** The repository (a namespace on Kubernetes), so that tenants share a broker. Default `default`. */
  readonly repository: string
  readonly user?: string
  readonly password?: () => string
  readonly token?: () => string
  /** Path of a file with an nkey seed. */
  readonly nkeyFile?: string
  /** Path of a credentials file (JWT and seed); read again at every connect. */
  readonly credentialsFile?: string
  readonly tls?: {
    readonly caFile?: string
    readonly certFile?: string
    readonly keyFile?: string
  }
}

/** The load of a member, as its heartbeats say it. */
export interface MemberLoad {
  readonly inFlight: number
  readonly queued: number
  readonly freeSlots: number
}

/**
 * Questions of members to one another beside inference. Routers ask steps and other routers to `describe` themselves, and steps for
 * `statistics`; steps ask routers whether a model is `ready` and whether a version is `unpinned`.
 */
export const QUESTIONS = ['describe', 'statistics', 'ready', 'unpinned'] as const

export type Question = (typeof QUESTIONS)[number]

export interface AskOptions {
  readonly signal: CancelSignal
  /** Milliseconds for the answer to come; 5 s if absent. */
  readonly timeoutMs?: number
}

/** Questions beside inference; JSON in, JSON out, one question and one answer, of any size up to `answerBytes`. */
export interface MemberQuestions {
  /**
   * Asks a member and waits for its answer.
   *
   * @throws ServeError: the member's own error, or STEP_UNAVAILABLE, STEP_LOST if it cannot be asked; MALFORMED_MESSAGE for a
   * description that is not the one that the step's heartbeats name.
   */
  ask(member: string, question: Question, argument: unknown, o: AskOptions): Promise<unknown>
}

/**
 * Answers a question; the answer must be JSON.
 * @throws ServeError UNSUPPORTED for one that is not for this role.
 */
export type AnswerQuestion = (question: Question, argument: unknown) => Promise<unknown>

/** Gives the executor of a model version of a replica. */
export type FindReplicaExecutor = (target: ModelTarget, replica: string) => Executor

/** The routers of its repository, as a step calls them for its models. */
export interface RouterCalls {
  /**
   * A model of the repository, executed by some router as if a client had sent the request. Fails with STEP_UNAVAILABLE if no
   * router is there.
   *
   * @param target - version 0 is the latest, the revision is ''.
   */
  readonly executor: FindExecutor
  /** Asks some router. @throws as MemberQuestions. */
  ask(question: Question, argument: unknown, o: AskOptions): Promise<unknown>
}

/** A member's connection to the broker. */
export interface BrokerCounts {
  readonly isUp: boolean
  /** Number of times that it came to be there. */
  readonly connects: number
  /** Bytes of the messages that were published on each connection. */
  readonly sentBytes: { readonly control: number; readonly data: number }
}

/** Counts of the connections over which a member reaches others, and of those members. */
export interface TransportCounts {
  readonly broker: BrokerCounts
  /** Members that are heard, of each role that this member listens to. */
  readonly members: ReadonlyMap<Heartbeat['role'], number>
  /** Members that share no protocol version with this one. */
  readonly foreign: number
  /** Undefined without a direct transport. */
  readonly direct: DirectCounts | undefined
}

export interface StepEndpointOptions {
  readonly broker: BrokerOptions
  /** Takes connections of routers without the broker between. */
  readonly direct?: DirectOptions | undefined
  readonly member: string
  /** Finds the executor of a model version for the calls of other members. */
  readonly executor: FindExecutor
  /** Answers `describe`: what the step serves now, as JSON. It changes only as `onChange` says. */
  describe(): unknown
  /** Answers every other question. */
  readonly answer: AnswerQuestion
  /** Lists the revisions that the step serves now. */
  revisions(): readonly (readonly [string, number, string])[]
  load(): MemberLoad
  /**
   * Calls the listener when the description or the revisions change, or the load changes so that it matters. @returns a function
   * that ends this.
   */
  onChange(listener: () => void): () => void
}

/** A step on the broker. */
export interface StepEndpoint {
  /** False while the broker is away. */
  readonly isConnected: boolean
  /** Reasons why other members cannot reach this one now, as texts for people; none if they can. */
  readonly obstacles: readonly string[]
  readonly transport: TransportCounts
  readonly routers: RouterCalls
  /** Asks every router that is there. Resolves when each has answered, or cannot; never rejects. */
  askRouters(
    question: Question,
    argument: unknown,
    o: AskOptions,
  ): Promise<readonly PromiseSettledResult<unknown>[]>
  /** Announces draining, takes nothing new, resolves when all accepted calls are answered and their outputs fetched. */
  drain(o: { readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}

export interface RouterEndpointOptions {
  readonly broker: BrokerOptions
  /** Connects to steps without the broker between, if they take that. */
  readonly direct?: DirectOptions | undefined
  readonly member: string
  /** Executes the requests of models that run in steps. */
  readonly executor: FindExecutor
  /** Answers every question but `describe`, from steps and other routers. */
  readonly answer: AnswerQuestion
  /** Answers `describe`: what other routers should know of this one, as JSON; the same object as long as it is the same. */
  describe(): object
  /** Called when another router has appeared and stays, or describes itself differently: ask it. */
  routerChanged(member: string): void
  /** Called when a step has appeared or serves something else: ask it. */
  stepChanged(member: string, revisions: readonly (readonly [string, number, string])[]): void
  /** Called when a step has left or is dead. */
  stepGone(member: string, error: ServeError): void
}

/** A router on the broker: calls steps, knows who is there. */
export interface RouterEndpoint extends MemberQuestions {
  readonly isConnected: boolean
  /** Milliseconds since the broker was lost: 0 while it is there, `Infinity` before it is there for the first time. */
  readonly awayMs: number
  /** Reasons why other members cannot reach this one now, as texts for people; none if they can. */
  readonly obstacles: readonly string[]
  /** Members that share no protocol version with this one: they are there, and not called. */
  readonly foreign: readonly ForeignMember[]
  readonly transport: TransportCounts
  /** Steps that are reached without the broker now. */
  readonly direct: readonly string[]
  /** The other routers of the repository. */
  readonly routers: readonly string[]
  /** Gives the executor of a model version of a step. */
  readonly executor: FindReplicaExecutor
  drain(o: { readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}
