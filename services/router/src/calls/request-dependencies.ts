import type { CallContext, Clock, Span, Tracing } from '@tutti/chassis'
import type { ServerMetrics } from '@tutti/telemetry'
import type {
  ExecuteOptions,
  InferRequest,
  ModelTarget,
  RequestObserver,
  ResponseSink,
} from '@tutti/tensor'
import type { FindReplicaExecutor, StepDirectory } from '@tutti/transport'
import type { LiveRevision, ResolvedEntry } from '../catalog/catalog.ts'
import type { HeldCalls } from './held-calls.ts'
import type { PinnedRequests } from './pinned-requests.ts'
import type { ReplicaCounts } from './replica-counts.ts'
import type { SequenceRoutes } from './sequence-routes.ts'

/** The context of a request, with what observes its steps and calls. */
export interface RequestCallContext extends CallContext, Pick<ExecuteOptions, 'observer'> {
  /** Items or iteration of the steps around it within which an ensemble runs, e.g. `[12]`; absent for none. */
  readonly within?: string
  /** Span that takes what happens around the steps of an ensemble; absent without tracing. */
  readonly span?: Pick<Span, 'addEvent'>
}

/** How the model versions of replicas are called. */
export interface ReplicaCalls {
  readonly executor: FindReplicaExecutor
  /** True if the steps are other processes: requests to them were checked before. */
  readonly areRemote?: boolean
}

/** A checked request to an ensemble, with the outputs that are wanted, none of them twice. */
export interface CachedEnsembleCall {
  readonly target: ResolvedEntry
  readonly request: InferRequest
  readonly requestedOutputs: readonly string[]
  readonly context: Pick<CallContext, 'signal'>
  readonly owner: {
    /** The pins of the revisions that execute, or have executed, the steps. */
    readonly pins: { pinOf(resolved: ResolvedEntry): { readonly target: ModelTarget } }
  }
}

/** Answers a request to an ensemble from the cache, or calls `begin` with the sink that keeps the answer. */
export type AnswerFromCache = (
  call: CachedEnsembleCall,
  sink: ResponseSink,
  begin: (sink: ResponseSink) => void,
) => void

/** A call of a nested ensemble. */
export interface NestedCall {
  readonly target: ResolvedEntry
  readonly request: InferRequest
  readonly context: CallContext
}

/** The parts of the router that all requests need, and share. */
export interface RequestDependencies {
  /** @throws ServeError for a model or version that is not served. */
  readonly lookup: (name: string, version: string) => ResolvedEntry
  /** Observes the requests to an ensemble, nested ones too. */
  readonly observerOf: (ensemble: ResolvedEntry) => RequestObserver | undefined
  readonly pinned: PinnedRequests
  /** The tensors that the runs of all requests hold, and their bytes: zero when none is in flight. */
  readonly memory: { count: number; bytesInUse: number }
  /** Requests in flight to each ensemble, nested ones too. By name, so that the count goes on when the plan changes. */
  readonly inFlight: Map<string, number>
  readonly directory: Pick<StepDirectory, 'places' | 'isServed' | 'whenDecided'>
  /** Calls that wait for the first replica of a Model; absent where no Model sleeps. */
  readonly held?: Pick<HeldCalls, 'hold'>
  /** Routes of the sequences' requests. */
  readonly sequences: Pick<SequenceRoutes, 'begin'>
  /** Lists the revisions that are served under a model version now, the best first. */
  readonly liveRevisions: (model: string, version: number) => readonly LiveRevision[]
  readonly replicas: ReplicaCalls
  /** Counts a request to an ensemble that is a step of another one. @returns where its responses go, and what is called when it begins. */
  readonly countNested: (
    call: NestedCall,
    sink: ResponseSink,
  ) => readonly [ResponseSink, (batchSize: number) => void]
  /** Called with a replica that does not serve what it was thought to. */
  readonly revisionRefused: (replica: string) => void
  readonly clock: Clock
  /** Draws a number from 0 up to, but not including, 1. */
  readonly random: () => number
  readonly metrics: Pick<ServerMetrics, 'observeStep' | 'countStep'>
  /** The counts of calls by replica, while a page looks. */
  readonly replicaCounts: Pick<ReplicaCounts, 'isCounting' | 'answered' | 'failed'>
  /** Absent without a response cache. */
  readonly cache?: AnswerFromCache
  /** Absent if spans lead nowhere. */
  readonly tracing: Tracing | undefined
}
