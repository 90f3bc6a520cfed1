import type { EnsembleSpec } from '@tutti/ensemble'
import { type Client, SECRET, type Stored, unlessNotFound } from '@tutti/kube'
import type { EnsembleObject } from '../../api/kinds.ts'
import type { ExposedEnsemble } from '../../resources/router-edge.ts'
import { readEnsemble } from '../ensemble/read-ensemble.ts'
import { servedNameOf } from '../served-names.ts'

/** The key of the Secret that `expose.auth.secretRef` names. */
const TOKEN = 'token'

/** The bearer token that an Ensemble wants of requests from outside. */
export type EdgeToken =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'missing'; readonly message: string }

/** @throws KubeError */
export async function readEdgeToken(
  client: Pick<Client, 'get'>,
  o: {
    readonly namespace: string
    readonly expose: EnsembleSpec['expose']
    readonly signal: AbortSignal
  },
): Promise<EdgeToken> {
  const name = o.expose?.auth?.secretRef.name
  if (name === undefined) return { kind: 'none' }
  const where = `expose.auth.secretRef.name: Secret "${name}"`
  const { namespace, signal } = o
  const secret = await unlessNotFound(client.get(SECRET, { namespace, name }, { signal }))
  if (secret === undefined) return { kind: 'missing', message: `${where} is not there` }
  const held = secret.data?.[TOKEN]
  const token = Buffer.from(held ?? '', 'base64')
    .toString()
    .trim()
  if (/^[\x21-\x7e]+$/.test(token)) return { kind: 'token', token }
  const got =
    held === undefined
      ? `has no key ${TOKEN}`
      : `has a key ${TOKEN} ${token === '' ? 'that is empty' : 'that no header can carry'}`
  const message = `${where} ${got}, want one of printable ASCII without spaces`
  return { kind: 'missing', message }
}

/**
 * The Ensembles of a namespace that are reached from outside. One whose token is not to be had is not: it must not be open
 * meanwhile.
 */
export async function findExposed(
  ensembles: readonly Stored<EnsembleObject>[],
  o: { readonly client: Client; readonly signal: AbortSignal },
): Promise<readonly ExposedEnsemble[]> {
  const found = await Promise.all(ensembles.map((ensemble) => toExposed(ensemble, o)))
  return found.filter((exposed) => exposed !== undefined)
}

async function toExposed(
  ensemble: Stored<EnsembleObject>,
  o: { readonly client: Client; readonly signal: AbortSignal },
): Promise<ExposedEnsemble | undefined> {
  const { namespace = '' } = ensemble.metadata
  const spec = readEnsemble(ensemble).manifest?.spec
  const hosts = hostsOf(spec?.expose)
  if (hosts === undefined) return undefined
  const token = await readEdgeToken(o.client, { namespace, expose: spec?.expose, ...o })
  if (token.kind === 'missing') return undefined
  const modelName = servedNameOf(ensemble)
  return { modelName, hosts, ...(token.kind === 'token' && { token: token.token }) }
}

function hostsOf(expose: EnsembleSpec['expose']): readonly string[] | undefined {
  return (expose?.ingress ?? expose?.gateway)?.hosts
}
