import type { Clock, Logger } from '@tutti/chassis'
import type { Engine } from './engine.ts'
import type { HostPolicies } from './host-policies.ts'
import type { CustomMetrics } from './model-metrics.ts'

/** Settings of one engine, as flags give them. */
export interface EngineSettings {
  /** Numbers by the fields that its descriptor names. */
  readonly settings: Readonly<Record<string, number>>
  /** Interpreter of an engine in Python processes: a name on PATH, a path, or a function that finds one when a model needs it. */
  readonly interpreter?: string | (() => Promise<string>)
  /** Path of the engine's native library, or of its folder. Default: that of its package. */
  readonly library?: string
  /** Folder in which unpacked environments of models are kept. */
  readonly environmentCache?: string
}

/** The settings of an engine, and what all engines of a process have in common. */
export interface EngineOpenOptions extends EngineSettings {
  /** Default: no log. */
  readonly log?: Logger
  readonly clock?: Clock
  /** Receiver of the metrics of models. Default: none. */
  readonly metrics?: CustomMetrics
  /** CPUs of instances. Default: those of this process. */
  readonly hostPolicies?: HostPolicies
  /** Key under which engines that are opened together share things, such as processes that fork instances: the same object for all. */
  readonly owner: object
}

/** The options for checking what this machine has. */
export interface EngineCheckOptions {
  /** Interpreters for an engine in Python processes, of which the first that can run its models is taken. */
  readonly interpreters: readonly string[]
  /** Whether the server makes an environment if none of the interpreters can run the models. */
  readonly makesEnvironment: boolean
}

/** The state of what an engine needs on a machine. `absent` is a fault if a model needs it, `note` is none. */
export type EngineCheck =
  | { readonly status: 'ok'; readonly found: string }
  | { readonly status: 'note'; readonly found: string; readonly mending: string }
  | { readonly status: 'absent'; readonly found: string; readonly mending: string }

/** The exports of `open.ts` in the folder of an engine. They are loaded with its first model, or when a machine is checked. */
export interface EngineCode {
  /** Makes the engine. What it needs of the machine it loads with its first model. */
  open(o: EngineOpenOptions): Engine
  /** Looks whether this machine has what the engine needs: a row of `tutti doctor`. */
  check(o: EngineCheckOptions): Promise<EngineCheck>
}
