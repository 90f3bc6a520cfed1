import {
  API_VERSION,
  type EnsembleStatus,
  type ModelStatus,
  refusalOf,
  resourceState,
} from '@tutti/api'
import type { Clock, Logger } from '@tutti/chassis'
import type { ClusterSource, UnreadyResource } from '@tutti/console'
import { SITE } from '@tutti/errors'
import {
  type Client,
  type ClusterAccess,
  createClient,
  createTransport,
  defineResource,
  type KubeObject,
  type Stored,
} from '@tutti/kube'

/** Resource as it comes from the cluster. The operator there may be of another release: no field is certain. */
interface ServedResource extends KubeObject {
  readonly spec?: { readonly modelName?: string }
  readonly status?: ModelStatus | EnsembleStatus
}
const KINDS = [
  {
    kind: 'Ensemble',
    resource: defineResource<ServedResource>(API_VERSION, 'ensembles', 'Ensemble'),
  },
  { kind: 'Model', resource: defineResource<ServedResource>(API_VERSION, 'models', 'Model') },
] as const

/**
 * Milliseconds from one reading to the next, and for each object of it: it costs the API server and this process as much as there
 * are.
 */
const AGE_MS = 10_000
const OBJECT_MS = 20
const TIMEOUT_MS = 10_000
/** Characters of a message; a condition's has up to 32,768. */
const LONGEST = 1000

/** States in their order: those that need a change by people stand first. */
const ORDER: readonly UnreadyResource['state'][] = ['refused', 'not ready', 'degraded']

/**
 * Opens a source for the console, which reads the Models and Ensembles of a namespace that are not Ready, with the cause in
 * their conditions.
 *
 * @param o.opened - closes the connection to the API server.
 */
export function openUnreadyResources(o: {
  readonly access: ClusterAccess
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
  readonly opened: AsyncDisposableStack
}): ClusterSource {
  const { access, namespace, clock, log, opened } = o
  const transport = createTransport(access, { clock, log, userAgent: 'tutti-router' })
  opened.defer(() => transport.close())
  const resources = new UnreadyResources({ client: createClient(transport), namespace, clock })
  return { namespace, unready: () => resources.read() }
}

interface ResourceReading {
  readonly client: Pick<Client, 'list'>
  readonly namespace: string
  readonly clock: Pick<Clock, 'now' | 'epochMs'>
}

/** Reads the resources that are not Ready. The API server is asked only when a page asks, and one answer serves all pages. */
export class UnreadyResources {
  readonly #reading: ResourceReading
  #answer: Promise<readonly UnreadyResource[]> = Promise.resolve([])
  #nextAt = Number.NEGATIVE_INFINITY

  constructor(o: ResourceReading) {
    this.#reading = o
  }

  /**
   * Returns the resources that are not Ready. An answer is used for at least 10 seconds.
   *
   * @throws KubeError if the resources cannot be read. The next try then waits as long as after an answer.
   */
  read(): Promise<readonly UnreadyResource[]> {
    if (this.#reading.clock.now() >= this.#nextAt) {
      // Until it has ended.
      this.#nextAt = Number.POSITIVE_INFINITY
      this.#answer = this.#list()
    }
    return this.#answer
  }

  async #list(): Promise<readonly UnreadyResource[]> {
    const { client, namespace, clock } = this.#reading
    let count = 0
    try {
      const lists = await Promise.all(
        KINDS.map(async ({ kind, resource }) => {
          const { items } = await client.list(resource, { namespace, timeoutMs: TIMEOUT_MS })
          count += items.length
          return items.flatMap((one) => toUnready(kind, one, clock.epochMs()))
        }),
      )
      return lists.flat().toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state))
    } finally {
      this.#nextAt = clock.now() + Math.max(AGE_MS, count * OBJECT_MS)
    }
  }
}

/** Converts a resource; returns none for one that is Ready. */
function toUnready(
  kind: UnreadyResource['kind'],
  resource: Stored<ServedResource>,
  nowMs: number,
): readonly UnreadyResource[] {
  const { state, cause } = resourceState(resource, nowMs)
  if (cause === undefined) return []
  const { metadata, spec } = resource
  const { reason, message } = cause
  return [
    {
      kind,
      name: metadata.name,
      model: spec?.modelName ?? metadata.name,
      state: refusalOf(resource) ? 'refused' : state === 'Degraded' ? 'degraded' : 'not ready',
      reason,
      message: message.length > LONGEST ? `${message.slice(0, LONGEST)} …` : message,
      help: `${SITE}/docs/conditions/#${kind.toLowerCase()}`,
    },
  ]
}
