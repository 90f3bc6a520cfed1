import type { StepControl, StepDescription } from '@tutti/api'
import type { FlagValues } from '@tutti/chassis'
import { assert } from '@tutti/errors'
import type { ProcessBase } from '@tutti/server'
import type { FindExecutor } from '@tutti/tensor'
import { StepDirectory } from '@tutti/transport'
import type { ReplicaCalls } from '../calls/request-dependencies.ts'
import { Router, type RouterOptions } from '../router.ts'
import type { Revisions } from '../view/step-members.ts'
import type { NESTING_FLAGS } from './nesting-flags.ts'
import type { RouterMember } from './router-member.ts'

/** The models of the router's own process; a `Step` is one. */
export interface LocalModels {
  /** Name of the process among all replicas. */
  readonly replica: string
  readonly executor: FindExecutor
  readonly control: Required<StepControl>
  served(): StepDescription['models']
  /** Lists replaced versions that are still used by requests which pinned them before. */
  retired(): Revisions
  onChange(listener: () => void): () => void
}

export interface OpenRouterOptions
  extends Pick<
    RouterOptions,
    | 'ensembles'
    | 'takesDown'
    | 'hasHeardSteps'
    | 'awaitsSteps'
    | 'servesAccepted'
    | 'control'
    | 'regions'
    | 'listNames'
    | 'wantedChanged'
    | 'log'
  > {
  readonly flags: FlagValues<typeof NESTING_FLAGS> & {
    readonly 'strict-readiness': boolean
    readonly 'max-held-calls'?: number
  }
  /** Models of this process; absent if it has none. */
  readonly local?: LocalModels
  /** Member on the broker that reaches the models of other processes; absent if none are called. */
  readonly member?: RouterMember
}

/** Opens a router over the models of its process, over those of the steps on the broker, or over both. */
export function openRouter(shared: ProcessBase, o: OpenRouterOptions): Router {
  const { flags, local, member, ...own } = o
  const { cache, clock, tracing, metrics, opened } = shared
  const router = new Router({
    ...own,
    cache,
    clock,
    tracing,
    metrics,
    strictReadiness: flags['strict-readiness'],
    nesting: { maxDepth: flags['max-bls-depth'], maxRequests: flags['max-bls-requests'] },
    ...(flags['max-held-calls'] !== undefined && { maxHeldCalls: flags['max-held-calls'] }),
    replicas: toReplicas(local, member),
    directory: member?.directory ?? new StepDirectory(),
    foreignSteps: () => member?.foreign ?? [],
    reachedOver: (replica) =>
      replica === local?.replica ? 'this process' : (member?.reachedOver(replica) ?? ''),
    otherRouters: () => member?.otherRouters ?? [],
    revisionRefused: (replica) => member?.refresh(replica),
  })
  if (local !== undefined) opened.defer(followModels(local, router))
  return router
}

function toReplicas(
  local: LocalModels | undefined,
  member: RouterMember | undefined,
): ReplicaCalls {
  if (member === undefined) {
    assert(local !== undefined, 'a router has models or a member')
    return local
  }
  if (local === undefined) return member
  return {
    executor: (target, replica) =>
      local.replica === replica ? local.executor(target) : member.executor(target, replica),
    areRemote: true,
  }
}

/** Tells the router at once what its process serves: nothing comes between. @returns ends it. */
function followModels(local: LocalModels, { view }: Router): () => void {
  const { replica, control } = local
  const learn = (): void =>
    view.describe({ replica, models: local.served() }, control, local.retired())
  learn()
  return local.onChange(learn)
}
