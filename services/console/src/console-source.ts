import type { EnsemblePlan } from '@tutti/graph'
import type { ModelConfig, ModelStatistics } from '@tutti/model-config'
import type { CaptureState, StepTotals, WantedRequest } from '@tutti/telemetry'
import type { UnreadyResource } from './api/cluster.ts'

/** A model or ensemble as its router knows it, also one that is not ready. */
export interface ConsoleModel {
  readonly name: string
  readonly kind: 'model' | 'ensemble'
  /** Configuration; absent if it was refused. */
  readonly config?: ModelConfig
  /** The plan of an ensemble that can run. */
  readonly plan?: EnsemblePlan
}

/** Options of `RequestCaptures.wait`. */
export interface WaitOptions {
  readonly page: string
  readonly turn: string
  readonly wanted: WantedRequest
}

/** A version that a replica has of a model; a model without versions has an entry without a number. */
export interface ReplicaVersion {
  readonly model: string
  readonly version: string
  readonly revision: string
  /** State as in the index, or IDLE for a version that is ready and gets no new requests. */
  readonly state: string
  /** Reason why the version gets no requests; '' if it gets them. */
  readonly reason: string
}

/** A step process that knows a model, as this router sees it. */
export interface ConsoleReplica {
  readonly replica: string
  /** Machine or pod of the replica; '' if the replica does not say. */
  readonly host: string
  readonly state: 'taking work' | 'draining' | 'suspect' | 'other protocol'
  /** `this process`, `nats`, or the kind of a direct connection. */
  readonly reachedOver: string
  /** Requests of this router that the replica has not answered. */
  readonly inFlight: number
  /** Load by all callers, as the replica reports it; undefined for a replica in this process. */
  readonly load: { readonly inFlight: number; readonly queued: number } | undefined
  readonly versions: readonly ReplicaVersion[]
}

/** Totals of the calls of one step at one replica, in milliseconds. Ensemble and step are '' for requests to the model itself. */
export interface ReplicaTotals {
  readonly replica: string
  readonly model: string
  readonly ensemble: string
  readonly step: string
  /** Requests that were answered. */
  readonly requests: number
  /** Attempts that failed, also those that were tried again elsewhere. */
  readonly failures: number
  readonly queueMs: number
  readonly transferMs: number
  readonly computeMs: number
}

/** Another router of the repository. */
export interface OtherRouter {
  readonly name: string
  /** Machine or pod of the replica; '' if the replica did not say. */
  readonly host: string
}

/** The source of the cluster's resources, for a router on Kubernetes. */
export interface ClusterSource {
  readonly namespace: string
  /**
   * Lists the Models and Ensembles that are not Ready, refused ones first. It may be called each second.
   *
   * @throws KubeError if the API server fails.
   */
  unready(): Promise<readonly UnreadyResource[]>
}

/** The source of the console's data that clients cannot ask for. The console asks only about models in its caller's index. */
export interface ConsoleSource {
  find(name: string): ConsoleModel | undefined
  /**
   * Reads the statistics of several models, as `InferenceBackend.statistics`. Unknown models are left out.
   *
   * @throws ServeError if a step does not answer.
   */
  statisticsOf(names: ReadonlySet<string>): Promise<readonly ModelStatistics[]>
  /**
   * Reads the state of a page's wait for a request; see `RequestCaptures`.
   *
   * @throws ServeError OVERLOADED if too many pages wait.
   */
  waitForRequest(o: WaitOptions): CaptureState
  stopWaiting(o: Pick<WaitOptions, 'page' | 'turn'>): void
  /** Lists the replicas that know some of the models, whether they serve them or not. */
  replicasOf(models: ReadonlySet<string>): readonly ConsoleReplica[]
  /** Reads totals of calls by replica. They are counted from the first read until a minute after the last one. */
  replicaTotals(): readonly ReplicaTotals[]
  otherRouters(): readonly OtherRouter[]
  /** Reads the totals of the steps of an ensemble. */
  stepTotals(ensemble: string): readonly StepTotals[]
}
