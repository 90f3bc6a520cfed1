import { hostname } from 'node:os'
import { type Clock, limitLog, type Running, type StartOptions } from '@tutti/chassis'
import { openConsole } from '@tutti/console'
import type { Json } from '@tutti/model-config'
import { scanRepositories } from '@tutti/repository'
import {
  type JsonAnswer,
  type OpenProbes,
  openClientRules,
  openRegions,
  type ProcessBase,
  type ServedContent,
  serveProcess,
} from '@tutti/server'
import { FLAGS_RULE, MODEL_RESOURCE_RULES } from '@tutti/serving'
import { withTraceFlags } from '@tutti/telemetry'
import type { openRouterEndpoint } from '@tutti/transport'
import manifest from '../../package.json' with { type: 'json' }
import type { WatchRevisions } from '../accepted/accepted-link.ts'
import type { WatchSecret } from '../accepted/edge-secret.ts'
import { openWatches } from '../accepted/open-watches.ts'
import { openUnreadyResources } from '../accepted/unready-resources.ts'
import { clusterOf } from '../accepted/watch-objects.ts'
import { type EnsembleSource, readEnsembles } from '../catalog/ensemble-source.ts'
import type { Router } from '../router.ts'
import { openEdge } from './open-edge.ts'
import { openRouter } from './open-router.ts'
import { pollEnsembles } from './poll-ensembles.ts'
import type { ROUTER_FLAGS, RouterFlags } from './router-flags.ts'
import { RouterMember } from './router-member.ts'
import { WantedModels } from './wanted-models.ts'

export interface StartRouterOptions extends StartOptions<typeof ROUTER_FLAGS> {
  readonly clock?: Clock
  /** Ensembles beside those of the repositories; none if absent. */
  readonly ensembles?: readonly EnsembleSource[]
  /** Joins the broker; `openRouterEndpoint` unless a test has its own. */
  readonly openEndpoint?: typeof openRouterEndpoint
  /** Watch of the ControllerRevisions, with --kubernetes. Default: the API server of the pod. Tests have their own. */
  readonly watch?: WatchRevisions
  /** Watch of the Secret, with --edge-secret-name. Default: the API server of the pod. Tests have their own. */
  readonly watchSecret?: WatchSecret
}

/**
 * Serves ensembles over the steps of a broker. The servers open when the steps that are there have described themselves, or
 * when one has not done so within some seconds. The probes answer before that.
 *
 * @throws ServeError if flags do not fit, a repository cannot be read or a port is taken.
 */
export async function startRouter(o: StartRouterOptions): Promise<Running> {
  const settings = withTraceFlags(o.settings, o.flags)
  return await serveProcess({ ...o, settings }, (shared, openProbes) =>
    composeRouter(o, shared, openProbes),
  )
}

async function composeRouter(
  o: StartRouterOptions,
  shared: ProcessBase,
  openProbes: OpenProbes,
): Promise<ServedContent> {
  const { flags } = o
  const { clock, env, opened, stopping } = shared
  const rules = await openClientRules(flags, shared)
  // Steps come and go, and their messages are not trusted.
  const log = limitLog(shared.log, { clock })
  const member = new RouterMember(shared, { flags, openEndpoint: o.openEndpoint })
  const router = openRouter(shared, {
    flags,
    member,
    ensembles: [...(await scanEnsembles(flags)), ...(o.ensembles ?? [])],
    hasHeardSteps: () => member.hasHeardSteps && accepted?.hasSynced !== false,
    control: () => (flags.kubernetes ? MODEL_RESOURCE_RULES : FLAGS_RULE),
    regions: openRegions({ flags, opened }),
    awaitsSteps: true,
    servesAccepted: flags.kubernetes,
    wantedChanged: () => wanted.changed(),
    log,
  })
  const wanted = new WantedModels({ clock, list: () => router.wantedModels() })
  opened.defer(() => wanted.close())
  const { view } = router
  const watches = openWatches({ ...o, env, view, clock, log, opened })
  const { accepted, edge: secret } = watches
  const answers = new Map<string, JsonAnswer>([
    ['/tutti/v1/served', () => toServedAnswer(router, member, secret?.revisions)],
    ['/tutti/v1/wanted', (query) => wanted.answer(query)],
  ])
  await openProbes({ members: [member], causes: watches.causes, answers })
  // The servers should not open on an empty catalog where steps are there.
  const hasAll = (): boolean =>
    accepted === undefined || (accepted.hasSynced && view.isAcceptedServed)
  await member.join(router, { signal: o.signal, hasAll })
  const follow = await pollEnsembles(flags, { router, clock, log })
  const followed = follow(stopping)
  opened.defer(() => followed)
  return {
    backend: router,
    stop: () => router.stop(),
    page: consoleOf(flags, { router, name: member.name, shared, log }),
    edge: await openEdge(flags, { secret, clock, log: shared.log, opened }),
    ...rules,
    fields: { router: member.name },
  }
}

function consoleOf(
  flags: RouterFlags,
  o: {
    readonly router: Router
    readonly name: string
    readonly shared: ProcessBase
    readonly log: ProcessBase['log']
  },
) {
  const { router, name, log } = o
  const { clock, env, opened } = o.shared
  const { version } = manifest
  const [scope, host] = [`router ${name}`, hostname()]
  const namespace = flags['repository-name']
  const isShown = flags.kubernetes && flags['console-port'] !== undefined
  const cluster = isShown
    ? openUnreadyResources({ access: clusterOf(env, clock), namespace, clock, log, opened })
    : undefined
  return openConsole({ flags, source: router, cluster, version, scope, host, clock })
}

/** Lists what requests reach, from outside too, and, for people, the steps that cannot be called, if there are any. */
function toServedAnswer(
  { view }: Router,
  member: RouterMember,
  exposed: Iterable<string> | undefined,
): Json {
  const foreign = member.foreign.map((one) => ({ ...one }))
  return {
    ...view.served,
    ...(exposed && { exposed: [...exposed] }),
    ...(foreign.length > 0 && { foreign }),
  }
}

async function scanEnsembles(flags: RouterFlags): Promise<readonly EnsembleSource[]> {
  if (flags['model-control-mode'] !== 'none' || flags['model-repository'].length === 0) return []
  const configName = flags['model-config-name']
  const options = configName === undefined ? {} : { configName }
  return await readEnsembles(await scanRepositories(flags['model-repository'], options))
}
