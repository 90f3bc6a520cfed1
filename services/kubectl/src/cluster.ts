import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import {
  type FlagTable,
  flagRefusal,
  type ProcessEnvironment,
  silentLogger,
  systemClock,
} from '@tutti/chassis'
import { reasonOfStatus } from '@tutti/command-line/client'
import { ServeError } from '@tutti/errors'
import {
  type Client,
  createClient,
  createTransport,
  isForbidden,
  isNotFound,
  KubeError,
  type KubeObject,
  type Resource,
  type Stored,
} from '@tutti/kube'
import { type ForwardedPort, filesOf, forwardPort, openKubeConfig } from '@tutti/kubeconfig'
import manifest from '../package.json' with { type: 'json' }
import { parseDuration } from './duration.ts'

const TIMEOUT_FLAG = '--request-timeout'

/** Flags of the cluster, as kubectl has them. kubectl passes the flags that follow the plugin's name. */
export const CLUSTER_FLAGS = {
  namespace: {
    type: 'string',
    aliases: ['n'],
    description: 'Namespace. Default: that of the context.',
  },
  context: { type: 'string', description: 'Context of the kubeconfig. Default: the current one.' },
  kubeconfig: {
    type: 'string',
    description: 'Kubeconfig file. Default: KUBECONFIG, else ~/.kube/config.',
    path: 'file',
  },
  'request-timeout': {
    type: 'string',
    default: '30s',
    description: 'How long to wait for each answer of the API server, such as 5s or 1m.',
  },
} as const satisfies FlagTable

export interface ClusterFlags {
  readonly namespace?: string | undefined
  readonly context?: string | undefined
  readonly kubeconfig?: string | undefined
  readonly 'request-timeout'?: string
}

/** The cluster that a command works with. */
export interface Cluster {
  readonly client: Client
  readonly transport: ReturnType<typeof createTransport>
  /** Namespace of the flags, else of the context, else `default`. */
  readonly namespace: string
  /** Forwards a port of this machine to a pod's port. The caller closes the forwarded port. @throws KubeError */
  forward(pod: string, port: number): Promise<ForwardedPort>
}

/**
 * Runs a command with the cluster of a kubeconfig, and closes the connection afterwards.
 *
 * @throws ServeError SETTING_INVALID for a bad kubeconfig. A KubeError becomes a ServeError with the API server's text.
 */
export async function withCluster<T>(
  flags: ClusterFlags,
  { env }: Pick<ProcessEnvironment, 'env'>,
  run: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const { access, namespace } = openKubeConfig({
    files: chosenFiles(flags, env),
    context: flags.context,
  })
  const userAgent = `kubectl-tutti/${manifest.version}`
  const timeoutMs = readTimeout(flags['request-timeout'])
  const common = { userAgent, timeoutMs }
  const transport = createTransport(access, { clock: systemClock, log: silentLogger, ...common })
  const client = createClient(transport)
  const chosen = flags.namespace || namespace || 'default'
  const forward = (pod: string, port: number) =>
    forwardPort({ access, namespace: chosen, pod, port, ...common })
  try {
    return await run({ client, transport, namespace: chosen, forward })
  } catch (error) {
    throw error instanceof KubeError ? toServeError(error, access.server) : error
  } finally {
    await transport.close()
  }
}

/** @throws ServeError FLAG_INVALID; kubectl's 0 for no limit too, since each command ends. */
function readTimeout(text: string = CLUSTER_FLAGS['request-timeout'].default): number {
  const timeoutMs = parseDuration(TIMEOUT_FLAG, text)
  if (timeoutMs === 0) throw flagRefusal(TIMEOUT_FLAG, `"${text}", want more than 0s`)
  return timeoutMs
}

/** @throws ServeError SETTING_INVALID if there is no kubeconfig. */
function chosenFiles(flags: ClusterFlags, env: ProcessEnvironment['env']): readonly string[] {
  const files = namedFiles(flags, env)
  if (files.some((file) => existsSync(file))) return files
  const problem = `${files.join(', ')}: there is no kubeconfig`
  throw new ServeError('SETTING_INVALID', `${problem}; name one by KUBECONFIG or --kubeconfig`)
}

function namedFiles(flags: ClusterFlags, env: ProcessEnvironment['env']): readonly string[] {
  if (flags.kubeconfig !== undefined) return [flags.kubeconfig]
  const listed = filesOf(env['KUBECONFIG'] ?? '')
  return listed.length > 0 ? listed : [join(env['HOME'] ?? homedir(), '.kube', 'config')]
}

function toServeError(error: KubeError, server: URL): ServeError {
  const { message } = error
  if (error.status === 0) {
    return new ServeError('SERVER_NOT_READY', `${server.origin}: ${message}`, { cause: error })
  }
  return new ServeError(reasonOfStatus(error.status) ?? 'INTERNAL', message, { cause: error })
}

/** Tells whether an error comes from the API server or from the connection to it. */
export function isOfCluster(error: unknown): boolean {
  return error instanceof ServeError && error.cause instanceof KubeError
}

/** Selects objects of a kind; without a namespace, those of all namespaces. */
export interface Listed {
  readonly namespace?: string | undefined
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/** Lists objects, and remembers what the user may not list. */
export class Reader {
  readonly #client: Client
  readonly #refused = new Map<string, string>()

  constructor(client: Client) {
    this.#client = client
  }

  /** Plurals of the kinds that the user may not list -> text of the API server. */
  get refused(): ReadonlyMap<string, string> {
    return this.#refused
  }

  /**
   * Lists the objects of a kind.
   *
   * @returns undefined if the user may not list them.
   * @throws ServeError NOT_FOUND if the cluster does not know the kind; KubeError otherwise.
   */
  async list<T extends KubeObject>(
    resource: Resource<T>,
    o: Listed,
  ): Promise<readonly Stored<T>[] | undefined> {
    try {
      return (await this.#client.list(resource, o)).items
    } catch (error) {
      if (isForbidden(error)) {
        this.#refused.set(resource.plural, error.message)
        return undefined
      }
      if (isNotFound(error)) throw withoutKind(resource)
      throw error
    }
  }
}

function withoutKind({ plural, group, kind }: Resource): ServeError {
  const what = group === '' ? plural : `${plural}.${group}`
  return new ServeError('NOT_FOUND', `the cluster knows no ${kind} (${what}): install Tutti first`)
}
