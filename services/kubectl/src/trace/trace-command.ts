import { modelNameOf } from '@tutti/api'
import { type FlagTable, type FlagValues, type ProcessEnvironment, printable } from '@tutti/chassis'
import { CONNECTION_FLAGS, openClient, REQUEST_FLAGS } from '@tutti/command-line/client'
import { KUBECTL_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { ASK_FOR_STEPS, TraceResult, traceModel } from '@tutti/command-line/trace'
import { ServeError } from '@tutti/errors'
import { isForbidden } from '@tutti/kube'
import type { ForwardedPort } from '@tutti/kubeconfig'
import { CLUSTER_FLAGS, type Cluster, Reader, withCluster } from '../cluster.ts'
import { findTarget, type Target } from '../targets.ts'
import { findRouter, type RouterPlace } from './find-router.ts'

/** Flags of `kubectl tutti trace`. There are none for TLS and tokens, since a router's forwarded port needs neither. */
export const CLUSTER_TRACE_FLAGS = {
  ...CLUSTER_FLAGS,
  ...REQUEST_FLAGS,
  'timeout-secs': CONNECTION_FLAGS['timeout-secs'],
  format: KUBECTL_FORMAT_FLAG,
} as const satisfies FlagTable
type ClusterTraceFlags = FlagValues<typeof CLUSTER_TRACE_FLAGS>

export const traceClusterCommand = withFlags(
  {
    usage: 'kubectl tutti trace NAME|model/NAME|ensemble/NAME --input NAME=VALUE [FLAGS]',
    flags: CLUSTER_TRACE_FLAGS,
    result: TraceResult.meta({ title: 'Result of kubectl tutti trace' }),
  },
  async ({ flags, positionals }, environment) => {
    const [text, ...more] = positionals
    if (text === undefined || more.length > 0) {
      throw new ServeError('FLAG_INVALID', `got ${positionals.length} names, want one`)
    }
    await withCluster(flags, environment, (cluster) => trace({ cluster, text, flags, environment }))
    return 0
  },
)

async function trace(o: {
  readonly cluster: Cluster
  /** Names the target. */
  readonly text: string
  readonly flags: ClusterTraceFlags
  readonly environment: ProcessEnvironment
}): Promise<void> {
  const { cluster, text, flags, environment } = o
  const { client, namespace } = cluster
  const target = await findTarget(new Reader(client), { namespace, text })
  const model = servedNameOfTarget(target)
  const router = await findRouter(client, namespace)
  const forward = await openForward(cluster, router)
  try {
    const url = `grpc://127.0.0.1:${forward.port}`
    const connection = { url, 'timeout-secs': flags['timeout-secs'] }
    // TUTTI_TOKEN is for another server.
    const opened = await openClient(connection, { ...environment, env: {} }, ASK_FOR_STEPS)
    await traceModel(opened, { model, flags, environment })
  } catch (error) {
    const version = flags['model-version']
    throw namingPod(error, { target, version, router, failure: forward.failure })
  } finally {
    await forward.close()
  }
}

/** @throws ServeError FLAG_INVALID for the router, which is no model. */
function servedNameOfTarget({ ensemble, models: [model], title }: Target): string {
  const served = ensemble ?? model
  if (served !== undefined) return modelNameOf(served)
  throw new ServeError('FLAG_INVALID', `got ${title}, want an Ensemble or a Model`)
}

/** @throws ServeError ACCESS_DENIED that names the rights. */
async function openForward(cluster: Cluster, { pod, port }: RouterPlace): Promise<ForwardedPort> {
  try {
    return await cluster.forward(pod, port)
  } catch (error) {
    if (!isForbidden(error)) throw error
    const rights = `get and create pods/portforward in namespace ${cluster.namespace}`
    const problem = `${error.message}; kubectl tutti trace needs the rights to ${rights}`
    throw new ServeError('ACCESS_DENIED', problem, { cause: error })
  }
}

/** Says what the failure of a request has to do with the cluster. */
function namingPod(
  caught: unknown,
  o: {
    readonly target: Target
    readonly version: number | undefined
    readonly router: RouterPlace
    readonly failure: string | undefined
  },
): ServeError {
  const error = ServeError.from(caught)
  const { reason, code, message } = error
  // If a version was asked for, the server says itself whether it or the whole model is missing.
  if (reason === 'MODEL_NOT_FOUND' && o.version === undefined) {
    const problem = `pod ${o.router.pod} does not serve ${o.target.title}: ${message}`
    return new ServeError(reason, `${problem}; kubectl tutti status says why`, {
      code,
      cause: error,
    })
  }
  if (code !== 'UNAVAILABLE' || o.failure === undefined) return error
  const problem = `the way to pod ${o.router.pod}: ${printable(o.failure)}`
  return new ServeError('SERVER_NOT_READY', problem, { cause: error })
}
