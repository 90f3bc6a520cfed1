import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, type Logger, limitLog } from '@tutti/chassis'
import type { OtherRouter } from '@tutti/console'
import { assert } from '@tutti/errors'
import type { BrokerMember, ProcessBase } from '@tutti/server'
import {
  type BrokerFlags,
  type FindReplicaExecutor,
  openRouterEndpoint,
  type RouterEndpoint,
  readBrokerFlags,
  StepDirectory,
  transportFamilies,
} from '@tutti/transport'
import type { ReplicaCalls } from '../calls/request-dependencies.ts'
import type { Router } from '../router.ts'
import { EnsembleComparison } from './ensemble-comparison.ts'
import { StepDiscovery } from './step-discovery.ts'
import { StepLink } from './step-link.ts'

/**
 * Time for which a lost broker does not make the router unready. All routers lose it together, and routers tell clients better
 * than an ingress controller without a server that they may try again. After that time, a router that lost the broker alone leaves
 * its clients to the others, unless direct connections carry all requests.
 */
const BROKER_GRACE_MS = 30_000

export interface RouterMemberOptions {
  readonly flags: BrokerFlags & {
    /** True if the ensembles come from the API server. */
    readonly kubernetes?: boolean
    readonly 'max-bls-requests': number
  }
  /** Name of this process's own step, if that is on the broker too. The router reaches it without the broker. */
  readonly ownStep?: string
  /** Joins the broker; `openRouterEndpoint` unless a test has its own. */
  readonly openEndpoint?: typeof openRouterEndpoint | undefined
}

/** A router as a member on the broker, with the steps that it hears there. Before it has joined it knows no steps. */
export class RouterMember implements BrokerMember, ReplicaCalls {
  readonly role = 'router'
  readonly areRemote = true
  readonly name = `router-${randomBytes(5).toString('hex')}`
  readonly directory = new StepDirectory()
  readonly #options: RouterMemberOptions
  readonly #opened: AsyncDisposableStack
  readonly #clock: Clock
  readonly #log: Logger
  /** Steps come and go, and their messages are not trusted. */
  readonly #bounded: Logger
  readonly #discovery: StepDiscovery
  #steps: StepLink | undefined
  #others: EnsembleComparison | undefined
  #endpoint: RouterEndpoint | undefined
  #executor: FindReplicaExecutor = notJoined
  #knowsSteps = false

  constructor({ opened, clock, log }: ProcessBase, options: RouterMemberOptions) {
    this.#options = options
    this.#opened = opened
    this.#clock = clock
    this.#log = log
    this.#bounded = limitLog(log, { clock })
    this.#discovery = opened.adopt(new StepDiscovery(), (open) => open.close())
  }

  /**
   * Joins the broker. From then on steps are known, and their models may call other models through the router. Resolves when
   * the steps that are there have described themselves, or when one has not done so within some seconds.
   *
   * @param o.hasAll - see StepDiscovery.
   */
  async join(
    router: Router,
    o: { readonly signal: AbortSignal; readonly hasAll?: () => boolean },
  ): Promise<void> {
    const members = Promise.withResolvers<RouterEndpoint>()
    const clock = this.#clock
    const log = this.#bounded
    const steps = new StepLink({ view: router.view, members: members.promise, clock, log })
    this.#steps = steps
    this.#opened.defer(() => steps.close())
    const { flags } = this.#options
    const others = new EnsembleComparison({
      self: this.name,
      host: hostname(),
      // The accepted ensembles come to every router, a moment apart.
      ensembles: () => (flags.kubernetes === true ? [] : router.view.ensembles),
      members: members.promise,
      log,
    })
    this.#others = others
    const endpoint = await this.#open(router, steps, others)
    this.#endpoint = endpoint
    this.#executor = endpoint.executor
    this.#opened.defer(() => endpoint.close())
    members.resolve(endpoint)
    const { signal, hasAll = () => true } = o
    await this.#discovery.begin(endpoint, steps, { clock, signal, hasAll })
  }

  #open(router: Router, steps: StepLink, others: EnsembleComparison): Promise<RouterEndpoint> {
    const { flags, ownStep, openEndpoint = openRouterEndpoint } = this.#options
    return openEndpoint({
      ...readBrokerFlags(flags),
      member: this.name,
      ownStep,
      directory: this.directory,
      executor: router.nested,
      answer: router.answer,
      describe: others.describe,
      routerChanged: others.routerChanged,
      settings: { maxCalls: flags['max-bls-requests'] },
      clock: this.#clock,
      log: this.#log,
      stepChanged: (replica, revisions) => steps.changed(replica, revisions),
      stepGone: (replica, error) => steps.gone(replica, error),
    })
  }

  get executor(): FindReplicaExecutor {
    return this.#executor
  }

  /** Steps that cannot be called, because they share no protocol version with this router. */
  get foreign(): RouterEndpoint['foreign'] {
    return this.#endpoint?.foreign ?? []
  }

  /** False as long as there may be steps that this router does not know yet. */
  get hasHeardSteps(): boolean {
    return this.#discovery.isOver
  }

  /** Tells the console how a replica is reached; '' before the router has joined. */
  reachedOver(replica: string): string {
    if (this.#endpoint === undefined) return ''
    const { direct, transport } = this.#endpoint
    return direct.includes(replica) ? (transport.direct?.kind ?? '') : 'nats'
  }

  /** Other routers of the repository, for the console. */
  get otherRouters(): readonly OtherRouter[] {
    const routers = this.#endpoint?.routers ?? []
    return routers.map((name) => ({ name, host: this.#others?.hostOf(name) ?? '' }))
  }

  /** Asks a replica anew what it serves. */
  refresh(replica: string): void {
    this.#steps?.refresh(replica)
  }

  causes(): readonly string[] {
    const endpoint = this.#endpoint
    if (endpoint === undefined) return ['the broker is not connected']
    const isForgiven = !endpoint.isConnected && this.#mayLackBroker(endpoint)
    const causes = isForgiven ? [] : endpoint.obstacles
    return [...causes, ...this.#stepCauses(endpoint.isConnected || isForgiven)]
  }

  /** @param mayHear - the broker is there, or need not be. */
  #stepCauses(mayHear: boolean): readonly string[] {
    if (!this.#discovery.isOver) return mayHear ? ['the steps have not been heard yet'] : []
    // The steps that were there at the start count. A later one that is slow must not take every router out of its Service.
    this.#knowsSteps ||= this.#steps?.isSettled === true
    return this.#knowsSteps ? [] : ['a step has not described itself yet']
  }

  families(): ReturnType<typeof transportFamilies> {
    return this.#endpoint === undefined ? [] : transportFamilies(this.#endpoint.transport)
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    await this.#endpoint?.drain(o)
  }

  /**
   * Tells whether the router stays ready without the broker: for some time, and while each served model version has a replica
   * that is reached without it.
   */
  #mayLackBroker({ awayMs, direct }: RouterEndpoint): boolean {
    if (awayMs <= BROKER_GRACE_MS) return true
    const reached = new Set(direct)
    const served = [...this.directory.places.byRevision.values()]
    const isReached = served.every((all) => all.some(({ address }) => reached.has(address.replica)))
    return served.length > 0 && isReached
  }
}

function notJoined(): never {
  assert(false, 'a request came before the broker was joined')
}
