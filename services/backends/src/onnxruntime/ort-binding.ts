import { createRequire } from 'node:module'
import { env } from 'onnxruntime-node'

/*
 * The one file that knows onnxruntime-node. It uses the package's own native binding (dist/binding.js) and not
 * InferenceSession: `session.run` is a promise and a setImmediate around the same synchronous call (3 us more), and in
 * 1.30 its Tensor class makes FP16 inputs a Float16Array, which the native side reads as zero bytes on Node 23 and newer.
 */

/** A tensor as the native side takes it and gives it. `data` is a typed array of the type, or texts for `string`. */
export interface OrtValue {
  readonly type: string
  readonly data: OrtArray | readonly string[]
  readonly dims: readonly number[]
  readonly location: 'cpu'
}

export type OrtArray =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>

/** Plain data, so that it can be handed to a session thread. */
export interface OrtSessionOptions {
  readonly executionProviders: readonly { readonly name: string; readonly deviceId?: number }[]
  readonly graphOptimizationLevel: 'disabled' | 'basic' | 'extended' | 'all'
  readonly intraOpNumThreads: number
  readonly interOpNumThreads: number
  readonly executionMode: 'sequential' | 'parallel'
  readonly enableCpuMemArena: boolean
  readonly enableMemPattern: boolean
  readonly logSeverityLevel: number
  /** `session.*` configuration entries. */
  readonly extra: Readonly<Record<string, string>>
}

/** A loaded model. Every call blocks the calling thread. */
export interface OrtSession {
  loadModel(path: string, options: OrtSessionOptions): void
  loadModel(
    buffer: ArrayBuffer,
    byteOffset: number,
    byteLength: number,
    options: OrtSessionOptions,
  ): void
  /** @param fetches - the outputs wanted; each value is null. */
  run(
    feeds: Readonly<Record<string, OrtValue>>,
    fetches: Readonly<Record<string, null>>,
    options: Readonly<Record<string, never>>,
  ): Record<string, OrtValue>
  dispose(): void
}

interface BindingModule {
  readonly binding: { readonly InferenceSession: new () => OrtSession }
  initOrt(): void
}

/** Makes an empty session on this thread; `loadModel` fills it. */
export function createOrtSession(): OrtSession {
  // Runtime lines on stderr would break the JSON log; what fails comes back as an exception anyway.
  env.logLevel = 'fatal'
  const require = createRequire(import.meta.url)
  const module: BindingModule = require('onnxruntime-node/dist/binding.js')
  module.initOrt()
  return new module.binding.InferenceSession()
}
