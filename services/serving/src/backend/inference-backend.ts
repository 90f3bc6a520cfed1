import type { ServeError } from '@tutti/errors'
import type { ModelConfig, ModelMetadata, ModelStatistics } from '@tutti/model-config'
import type { OutputPlace, SharedRegions } from '@tutti/shared-memory'
import type { Executor } from '@tutti/tensor'
import type { ClientShare } from '../admission/admission-ticket.ts'
import type { Caller, CallerIdentity } from './caller.ts'

export interface RequestedOutput {
  readonly name: string
  /** Top-k if above 0; 0 for the tensor itself. */
  readonly classification: number
  /** Place in shared memory of the client; absent if the answer has the bytes. */
  readonly place?: OutputPlace
}

/** A model version that a request was resolved to. What it pins stays alive until the request is answered. */
export interface ResolvedModel extends Executor {
  readonly name: string
  readonly version: number
  /** Config of the version, completed and normalised. */
  readonly config: ModelConfig
  readonly isDecoupled: boolean
  /** The label lines of an output, for classification; undefined if it has none. */
  labels(output: string): readonly string[] | undefined
  /** Checks the request against the config (triton-semantics 4.6, from step 6 on) and executes it. */
  execute: Executor['execute']
}

export interface IndexEntry {
  readonly name: string
  readonly version: string
  readonly state: '' | 'UNKNOWN' | 'READY' | 'UNAVAILABLE' | 'LOADING' | 'UNLOADING'
  readonly reason: string
}

/** The contents of a load request, which replace what is on disk (triton-semantics 3.3). */
export interface LoadParameters {
  /** JSON of a ModelConfig, in place of config.pbtxt. */
  readonly config?: string
  /** Path within the model directory -> contents, in place of the whole directory. Views into the request. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** Loads and unloads models for clients. */
export interface ModelControl {
  /** The reason why it refuses every load and unload; requests are then refused before they are read. */
  readonly refusal?: ServeError
  /**
   * Loads a model, and for an ensemble the models that it is composed of. Resolves once they are loaded; goes on if the client
   * leaves.
   *
   * @throws ServeError with the texts of triton-semantics 3.3.
   */
  load(name: string, parameters: LoadParameters): Promise<void>
  /** Unloads a model. Resolves once it takes no new requests; accepted requests are finished in the background. */
  unload(name: string, o: { readonly unloadDependents: boolean }): Promise<void>
}

/**
 * Selects the backend of a call by its caller, before anything of it is read.
 *
 * @throws ServeError if the caller reaches none; the call is answered with this error.
 */
export type BackendSelector = (caller: Caller) => InferenceBackend

export type Protocol = 'http' | 'grpc'

/** Wraps the selector of a protocol. Returns the selector itself where there is nothing to add. */
export type SelectorDecorator = (protocol: Protocol, select: BackendSelector) => BackendSelector

/** The models that a server serves, of a router or a step. All errors are ServeErrors with Triton's text. */
export interface InferenceBackend {
  /** False while the process shuts down. */
  isLive(): boolean
  /** Triton's ServerReady, strict readiness included. */
  isReady(): boolean
  /**
   * Checks whether a model version is ready, and asks the model itself where it can be asked. Resolves with false for an unknown
   * model, as Triton 2.51; rejects with INVALID_ARGUMENT for a version that does not parse.
   */
  isModelReady(name: string, version: string): Promise<boolean>
  /**
   * Finds the model version for a request.
   *
   * @param version - as the client wrote it; '' for the latest ready one.
   * @throws ServeError with the lookup errors of triton-semantics 4.5.
   */
  resolve(name: string, version: string): ResolvedModel
  modelMetadata(name: string, version: string): ModelMetadata
  /** Reads statistics of a model. @param name - '' for all models. */
  statistics(name: string, version: string): Promise<readonly ModelStatistics[]>
  repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]>
  /** Control of models by clients; absent where they may not load and unload: in the model control modes `none` and `poll`. */
  readonly control?: ModelControl | undefined
  /** Checks the caller of a call that stays open. @throws ServeError once the caller has lost all access. */
  checkCaller?(): void
  /** Identity of the caller, where callers have identities. */
  readonly identity?: CallerIdentity | undefined
  /** Share in which bytes that wait for the caller count, where callers have identities. */
  readonly share?: ClientShare | undefined
  /** Regions of shared memory that clients have registered, where the server allows them. */
  readonly regions?: SharedRegions | undefined
}
