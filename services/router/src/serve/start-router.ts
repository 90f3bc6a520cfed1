import { randomBytes } from 'node:crypto'
import {
  type Clock,
  createTracing,
  type Running,
  type StartOptions,
  sleep,
  systemClock,
  toDrainMs,
  toTracingOptions,
  withCauses,
} from '@tutti/chassis'
import { assert } from '@tutti/errors'
import { openDoors, openMetricsDoor, ServerMetrics } from '@tutti/front-door'
import { scanRepositories } from '@tutti/repository'
import { openRouterPeer, type RouterPeer, StepDirectory, toBrokerOptions } from '@tutti/transport'
import { type EnsembleSource, readEnsembles } from '../ensemble-source.ts'
import { SERVING } from '../log-events.ts'
import { Router } from '../router.ts'
import type { ROUTER_FLAGS, RouterFlags } from './router-flags.ts'
import { StepLink } from './step-link.ts'

export interface StartRouterOptions extends StartOptions<typeof ROUTER_FLAGS> {
  readonly clock?: Clock
  /** Joins the broker; `openRouterPeer` unless a test has its own. */
  readonly openPeer?: typeof openRouterPeer
}

/**
 * Serves ensembles over the steps of a broker. The doors open when the steps that are there have described themselves, or did
 * not within some seconds; the probes answer before.
 *
 * @throws ServeError if flags do not fit, a repository cannot be read or a port is taken.
 */
export async function startRouter(o: StartRouterOptions): Promise<Running> {
  const opened = new AsyncDisposableStack()
  try {
    return await serveRouter(o, opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

async function serveRouter(o: StartRouterOptions, opened: AsyncDisposableStack): Promise<Running> {
  const { flags, log } = o
  const clock = o.clock ?? systemClock
  const broker = toBrokerOptions(flags)
  const ensembles = await scanEnsembles(flags)
  const tracing = createTracing(toTracingOptions(o.settings))
  opened.defer(() => tracing.shutdown())
  const metrics = new ServerMetrics()
  const directory = new StepDirectory()
  const name = `router-${randomBytes(5).toString('hex')}`

  const join = Promise.withResolvers<RouterPeer>()
  let peer: RouterPeer | undefined
  const router = new Router({
    name,
    ensembles,
    directory,
    bearer: { call: (...call) => joinedPeer(peer).bearer.call(...call) },
    strictReadiness: flags['strict-readiness'],
    awaitsSteps: true,
    revisionRefused: (replica) => steps.refresh(replica),
    clock,
    log,
    tracing,
    metrics,
  })
  const steps = new StepLink({ router, peers: join.promise, clock, log })
  opened.defer(() => steps.close())
  const health = withCauses(o.health, () => findCauses(peer, steps))
  const metricsServer = await openMetricsDoor({ flags, metrics, health, log })
  opened.defer(async () => metricsServer?.close())
  const joined = await (o.openPeer ?? openRouterPeer)({
    broker,
    peer: name,
    directory,
    clock,
    log,
    stepChanged: (replica, revisions) => steps.changed(replica, revisions),
    stepGone: (replica, error) => steps.gone(replica, error),
  })
  opened.defer(() => joined.close())
  peer = joined
  join.resolve(joined)
  await untilDescribed(joined, steps, { clock, signal: o.signal })

  const doors = await openDoors({ flags, backend: router, metrics, metricsServer, clock, log })
  opened.defer(() => doors.close())
  log.info(SERVING, { ...doors.ports, router: name })
  return {
    stopAccepting: () => {
      doors.stopAccepting()
      router.stop()
    },
    drain: async ({ signal }) => {
      await Promise.all([joined.drain({ signal }), doors.drain({ timeoutMs: toDrainMs(flags) })])
    },
    close: () => opened.disposeAsync(),
  }
}

async function scanEnsembles(flags: RouterFlags): Promise<readonly EnsembleSource[]> {
  if (flags['model-repository'].length === 0) return []
  const configName = flags['model-config-name']
  const options = configName === undefined ? {} : { configName }
  return await readEnsembles(await scanRepositories(flags['model-repository'], options))
}

function joinedPeer(peer: RouterPeer | undefined): RouterPeer {
  assert(peer !== undefined, 'a request came before the broker was joined')
  return peer
}

/** What holds the process back from being ready, beside what its lifecycle says. */
function findCauses(peer: RouterPeer | undefined, steps: StepLink): readonly string[] {
  const causes: string[] = []
  if (peer?.isConnected !== true) causes.push('the broker is not connected')
  if (!steps.isSettled) causes.push('a step has not described itself yet')
  return causes
}

/** Steps answer a newcomer's heartbeat at once; two of their own are enough in any case. */
const HEARING_MS = 600
const DESCRIBING_MS = 5000
const LOOK_EVERY_MS = 20

/** The doors should not open on an empty catalog where steps are there; a step that says nothing must not keep them shut. */
async function untilDescribed(
  peer: RouterPeer,
  steps: StepLink,
  o: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  if (!peer.isConnected) return
  await sleep(HEARING_MS, o)
  const until = o.clock.now() + DESCRIBING_MS
  while (!steps.isSettled && o.clock.now() < until) await sleep(LOOK_EVERY_MS, o)
}
