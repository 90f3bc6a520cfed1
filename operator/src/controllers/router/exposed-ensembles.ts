import { createHash } from 'node:crypto'
import type { EdgeIdentity, EnsembleSpec, ExposeAuth, ExposeIdentity } from '@tutti/api'
import {
  type Client,
  KubeError,
  SECRET,
  type Stored,
  type TokenIssuer,
  unlessNotFound,
} from '@tutti/kube'
import type { EnsembleObject } from '../../api/kinds.ts'
import type { ExposedEnsemble, ExposedEnsembles } from '../../resources/router-edge.ts'
import { digestOf } from '../../runtime/canonical.ts'
import { readEnsemble } from '../read-ensemble.ts'
import { servedNameOf } from '../served-names.ts'
import type { IssuerKeys } from './issuer-keys.ts'

/** The key of the Secret where there are no identities. */
const TOKEN = 'token'
/** The name of those who bring the one token. */
const TOKEN_IDENTITY = 'token'

export interface ReadLockOptions {
  readonly client: Pick<Client, 'get'>
  readonly issuer: Pick<IssuerKeys, 'read'>
  readonly signal: AbortSignal
}

/** A problem of an edge lock: a token is missing in its Secret, or the keys of the token issuer cannot be read. */
export interface LockProblem {
  readonly missing: 'token' | 'issuer'
  readonly message: string
}

/** The identities that may call an Ensemble from outside the cluster. */
export interface EdgeLock {
  /** Lock of the Ensemble; undefined if no identity can be let in, and then the Ensemble must not be exposed. */
  readonly lock: ExposedEnsemble['lock'] | undefined
  readonly issuer?: TokenIssuer | undefined
  /** Problem that keeps out one of the declared identities. */
  readonly problem?: LockProblem | undefined
  /** Uid of the Secret with the tokens. */
  readonly secretUid?: string | undefined
}

/** Reads the tokens and issuer keys that `expose.auth` needs. Without `auth` the lock is open to all. @throws KubeError */
export async function readEdgeLock(
  namespace: string,
  expose: EnsembleSpec['expose'],
  o: ReadLockOptions,
): Promise<EdgeLock> {
  const { auth } = expose ?? {}
  if (auth === undefined) return { lock: {} }
  const tokens = await readTokens(namespace, auth, o)
  const { issuer, problem } = await readIssuer(auth, o)
  const { identities, quota } = auth
  const toIdentity = (one: ExposeIdentity): EdgeIdentity[] => {
    const { name, tokenKey, serviceAccount } = one
    const limit = one.quota ?? quota
    const common = { name, ...(limit !== undefined && { quota: limit }) }
    if (serviceAccount !== undefined) {
      const { audience = '' } = auth
      const { name: account, namespace: of = namespace } = serviceAccount
      const named = { namespace: of, name: account, audience }
      return issuer === undefined ? [] : [{ ...common, serviceAccount: named }]
    }
    const token = tokens.read(tokenKey ?? TOKEN)
    return typeof token === 'string' ? [{ ...common, tokenSha256: token }] : []
  }
  const wanted = identities ?? [{ name: TOKEN_IDENTITY, tokenKey: TOKEN }]
  const problems = wanted.flatMap(({ tokenKey }, i) => {
    if (tokenKey === undefined) return []
    const token = tokens.read(tokenKey)
    if (typeof token === 'string') return []
    const where = identities === undefined ? '' : ` for identities[${i}](${wanted[i]?.name})`
    return [{ missing: 'token' as const, message: `${token.problem}${where}` }]
  })
  const found = wanted.flatMap(toIdentity)
  return {
    lock: found.length === 0 ? undefined : { identities: found },
    issuer,
    problem: problems[0] ?? problem,
    secretUid: tokens.uid,
  }
}

/** The content of a key of the Secret: a digest, or why there is none. */
type Token = string | { readonly problem: string }

async function readTokens(
  namespace: string,
  { secretRef }: ExposeAuth,
  { client, signal }: ReadLockOptions,
): Promise<{ readonly uid?: string | undefined; read(key: string): Token }> {
  if (secretRef === undefined) return { read: () => ({ problem: 'expose.auth.secretRef: none' }) }
  const { name } = secretRef
  const where = `expose.auth.secretRef.name: Secret "${name}"`
  const secret = await unlessNotFound(client.get(SECRET, { namespace, name }, { signal }))
  return {
    uid: secret?.metadata.uid,
    read: (key) => {
      if (secret === undefined) return { problem: `${where} is not there, want its key ${key}` }
      const held = secret.data?.[key]
      const token = Buffer.from(held ?? '', 'base64')
        .toString()
        .trim()
      if (/^[\x21-\x7e]+$/.test(token)) return createHash('sha256').update(token).digest('hex')
      const got =
        held === undefined
          ? `has no key ${key}`
          : `has a key ${key} ${token === '' ? 'that is empty' : 'that no header can carry'}`
      return { problem: `${where} ${got}, want one of printable ASCII without spaces` }
    },
  }
}

/**
 * Reads the issuer. A failure must not delay a change that ends the access of others, so it is logged and tried again with the
 * next look.
 */
async function readIssuer(
  { identities = [] }: ExposeAuth,
  { issuer, signal }: ReadLockOptions,
): Promise<{ readonly issuer?: TokenIssuer; readonly problem?: LockProblem }> {
  if (!identities.some(({ serviceAccount }) => serviceAccount !== undefined)) return {}
  try {
    return { issuer: await issuer.read(signal) }
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
    const message = `expose.auth.identities: the keys of the cluster's token issuer cannot be read: ${error.message}`
    return { problem: { missing: 'issuer', message } }
  }
}

/** Finds the exposed Ensembles among those of a namespace. One that can let in no identity is left out. @throws KubeError */
export async function findExposed(
  ensembles: readonly Stored<EnsembleObject>[],
  o: ReadLockOptions,
): Promise<ExposedEnsembles> {
  const found = await Promise.all(ensembles.map((ensemble) => readExposure(ensemble, o)))
  return {
    ensembles: found.flatMap(({ exposed }) => exposed ?? []),
    issuer: found.find(({ issuer }) => issuer !== undefined)?.issuer,
    usesIssuer: found.some(({ usesIssuer }) => usesIssuer === true),
  }
}

/** The access to an Ensemble from outside the cluster. */
export interface OutsideAccess {
  /** Exposed Ensemble for routers; absent if no request may come from outside the cluster. */
  readonly exposed?: ExposedEnsemble
  readonly issuer?: TokenIssuer | undefined
  readonly usesIssuer?: boolean
  /** Problem that keeps out one of the declared identities. */
  readonly problem?: LockProblem | undefined
}

/** Reads hosts, lock and issuer of an Ensemble; the result is empty if it is not exposed. @throws KubeError */
export async function readExposure(
  ensemble: Stored<EnsembleObject>,
  o: ReadLockOptions,
): Promise<OutsideAccess> {
  const { namespace = '' } = ensemble.metadata
  const expose = readEnsemble(ensemble).manifest?.spec.expose
  const hosts = (expose?.ingress ?? expose?.gateway)?.hosts
  if (hosts === undefined) return {}
  const { lock, issuer, problem, secretUid } = await readEdgeLock(namespace, expose, o)
  const usesIssuer = expose?.auth?.audience !== undefined
  const modelName = servedNameOf(ensemble)
  // Routers tell it to all who ask them: the random uid of the Secret keeps those from trying guesses of a token.
  const revision = digestOf({ modelName, hosts: hosts.toSorted(), lock, secretUid })
  const exposed = lock && { modelName, hosts, lock, revision }
  return { ...(exposed && { exposed }), issuer, usesIssuer, problem }
}
