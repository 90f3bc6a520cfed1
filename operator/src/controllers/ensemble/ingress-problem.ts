import type { EnsembleExpose } from '@tutti/api'
import type { Clock } from '@tutti/chassis'
import { type Client, INGRESS_CLASS, KubeError, type Secret } from '@tutti/kube'
import type { IngressRecord } from '../kept-objects.ts'
import type { ExposureProblem } from './exposure-problem.ts'

type IngressExpose = NonNullable<EnsembleExpose['ingress']>

/** Names that one message tells. */
const MOST_TOLD = 5
/** People install ingress controllers rarely. */
const AGED_MS = 10_000
const TLS_KEYS = ['tls.crt', 'tls.key']

/** The Ingresses of an Ensemble, and functions that look up the objects to which they refer. */
export interface IngressView {
  readonly expose: IngressExpose
  readonly ingresses: readonly Pick<IngressRecord, 'isTaken'>[]
  readonly secretNamed: (name: string) => Pick<Secret, 'data'> | undefined
  /** Function that lists the names of the cluster's IngressClasses; undefined if they cannot be read. */
  readonly classes: () => Promise<readonly string[] | undefined>
}

/**
 * Finds why the Ingresses of an Ensemble let in no requests: a TLS Secret or the IngressClass is missing; undefined if neither
 * is.
 */
export async function findIngressProblem(o: IngressView): Promise<ExposureProblem | undefined> {
  return findTlsProblem(o) ?? (await findClassProblem(o))
}

/**
 * Finds a problem of the TLS Secret. cert-manager makes the Secret once the Ingress is there, so a missing one is no problem yet.
 */
function findTlsProblem({ expose, secretNamed }: IngressView): ExposureProblem | undefined {
  for (const [i, { secretName }] of (expose.tls ?? []).entries()) {
    if (secretName === undefined) continue
    const secret = secretNamed(secretName)
    const missing = TLS_KEYS.find((key) => secret?.data?.[key] === undefined)
    if (missing === undefined) continue
    const got = secret === undefined ? 'does not exist' : `has no key ${missing}`
    const message = `expose.ingress.tls[${i}].secretName: Secret "${secretName}" ${got}, want one with ${TLS_KEYS.join(' and ')}`
    return { reason: 'TlsSecretMissing', message, isAwaited: true }
  }
  return undefined
}

/** Finds a problem of the IngressClass. Some controllers want no such object: an Ingress that one of them has taken is fine. */
async function findClassProblem({
  expose: { className },
  ingresses,
  classes,
}: IngressView): Promise<ExposureProblem | undefined> {
  if (className === undefined || ingresses.some(({ isTaken }) => isTaken)) return undefined
  const known = await classes()
  if (known === undefined || known.includes(className)) return undefined
  const there = known.length === 0 ? 'none' : known.slice(0, MOST_TOLD).join(', ')
  const message = `expose.ingress.className: IngressClass "${className}" does not exist; the cluster has ${there}`
  return { reason: 'IngressClassNotFound', message }
}

/** Reads the names of the cluster's IngressClasses and keeps them for 10 s. */
export class IngressClasses {
  readonly #client: Pick<Client, 'list'>
  readonly #clock: Pick<Clock, 'now'>
  #names: readonly string[] | undefined
  #readAt = Number.NEGATIVE_INFINITY

  constructor({
    client,
    clock,
  }: { readonly client: Pick<Client, 'list'>; readonly clock: Pick<Clock, 'now'> }) {
    this.#client = client
    this.#clock = clock
  }

  /** Returns the sorted names; undefined if they cannot be read. An operator of some namespaces has no right to read them. */
  async read(signal: AbortSignal): Promise<readonly string[] | undefined> {
    if (this.#clock.now() - this.#readAt < AGED_MS) return this.#names
    try {
      const { items } = await this.#client.list(INGRESS_CLASS, { signal })
      this.#names = items.map(({ metadata }) => metadata.name).toSorted()
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      this.#names = undefined
    }
    this.#readAt = this.#clock.now()
    return this.#names
  }
}
