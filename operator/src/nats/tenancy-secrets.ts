import {
  type CallOptions,
  type Client,
  isAlreadyExists,
  type ObjectKey,
  type OwnerReference,
  SECRET,
  type Secret,
  type Stored,
  unlessNotFound,
} from '@tutti/kube'
import { FIELD_MANAGER, isManaged, MANAGED_BY } from '../runtime/children.ts'
import { TerminalError } from '../runtime/terminal-error.ts'
import type { SecretTexts } from './tenancy-keys.ts'

/** Names of the Secrets. */
export const NATS_SECRETS = {
  /** The keys, in the operator's namespace. Never overwritten, never made again while what follows from them is there. */
  keys: 'tutti-nats-keys',
  /** The files that the servers start with, in the operator's namespace. Follows from the keys. */
  server: 'tutti-nats-server',
  /** The credential of a namespace, there. */
  credentials: 'tutti-nats',
} as const

/** The client that reads and writes Secrets. */
export type SecretClient = Pick<Client, 'get' | 'create' | 'mergePatch'>

/** A Secret as the code here reads it. */
export interface FoundSecret {
  readonly key: ObjectKey
  readonly resourceVersion: string
  readonly texts: SecretTexts
  readonly annotations: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly owners: readonly OwnerReference[]
  /** The operator made it. */
  readonly isOurs: boolean
}

/** A Secret as it shall be. */
export interface DesiredSecret {
  readonly key: ObjectKey
  /** `nats`: of the servers; `credentials`: of a namespace, and so part of its router set. */
  readonly component: 'nats' | 'credentials'
  readonly texts: SecretTexts
  /** It goes with the last of them; absent: it has none. */
  readonly owners?: readonly OwnerReference[]
  /** Beside those that all have. */
  readonly labels?: Readonly<Record<string, string>>
}

/** The parts of a desired Secret that may differ from one that is there. */
type Content = Pick<DesiredSecret, 'texts' | 'owners' | 'labels'>

/** As messages have it. */
export function nameOf(key: ObjectKey): string {
  return `Secret "${key.namespace}/${key.name}"`
}

/** @returns the Secret; undefined if there is none. @throws KubeError */
export async function findSecret(
  client: SecretClient,
  key: ObjectKey,
  o: CallOptions,
): Promise<FoundSecret | undefined> {
  const secret = await unlessNotFound(client.get(SECRET, key, o))
  return secret && toFound(key, secret)
}

/** Makes the Secret unless there is one. @returns the one that is there. @throws KubeError */
export async function createSecret(
  client: SecretClient,
  { key, component, texts, owners: ownerReferences = [], labels: more }: DesiredSecret,
  o: CallOptions,
): Promise<FoundSecret> {
  const labels = {
    ...MANAGED_BY,
    'app.kubernetes.io/name': 'tutti',
    'app.kubernetes.io/component': component,
    ...more,
  }
  const metadata = { ...key, labels, ...(ownerReferences.length > 0 && { ownerReferences }) }
  const desired = { metadata, type: 'Opaque', data: toData(texts) }
  try {
    const made = await client.create(SECRET, desired, { ...o, fieldManager: FIELD_MANAGER })
    return toFound(key, made)
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    return toFound(key, await client.get(SECRET, key, o))
  }
}

/** Makes the Secret so, unless it is. @throws KubeError; TerminalError if it is there, different, and not the operator's. */
export async function writeSecret(
  client: SecretClient,
  found: FoundSecret | undefined,
  desired: DesiredSecret,
  o: CallOptions,
): Promise<void> {
  const there = found ?? (await createSecret(client, desired, o))
  if (isAsDesired(there, desired)) return
  if (!there.isOurs) {
    const label = `the label app.kubernetes.io/managed-by: ${FIELD_MANAGER}`
    throw new TerminalError(
      `${nameOf(there.key)} is not the operator's, it lacks ${label}: delete it`,
    )
  }
  await replaceTexts(client, there, desired, o)
}

/** Makes `texts` all that the Secret holds, `owners` its owners if they are given, and adds `labels`. @throws KubeError: a Conflict if it changed since it was found. */
export async function replaceTexts(
  client: SecretClient,
  found: FoundSecret,
  { texts, owners, labels }: Content,
  o: CallOptions,
): Promise<FoundSecret> {
  const gone = Object.keys(found.texts).filter((name) => texts[name] === undefined)
  const patch = {
    metadata: {
      resourceVersion: found.resourceVersion,
      ...(owners !== undefined && { ownerReferences: owners.map((owner) => ({ ...owner })) }),
      ...(labels !== undefined && { labels }),
    },
    data: { ...toData(texts), ...Object.fromEntries(gone.map((name) => [name, null])) },
  }
  const options = { ...o, fieldManager: FIELD_MANAGER, patch }
  return toFound(found.key, await client.mergePatch(SECRET, found.key, options))
}

/** Whether nothing is to be written. Owners of a Secret that is not ours do not matter. */
export function isAsDesired(found: FoundSecret, { texts, owners, labels = {} }: Content): boolean {
  const names = Object.keys(texts)
  return (
    (owners === undefined || !found.isOurs || uidsOf(owners) === uidsOf(found.owners)) &&
    Object.entries(labels).every(([name, value]) => found.labels[name] === value) &&
    names.length === Object.keys(found.texts).length &&
    names.every((name) => found.texts[name] === texts[name])
  )
}

function toFound(key: ObjectKey, secret: Stored<Secret>): FoundSecret {
  const { annotations, labels, ownerReferences, resourceVersion } = secret.metadata
  const entries = Object.entries(secret.data ?? {})
  return {
    key,
    resourceVersion,
    texts: Object.fromEntries(
      entries.map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]),
    ),
    annotations: annotations ?? {},
    labels: labels ?? {},
    owners: ownerReferences ?? [],
    isOurs: isManaged(secret),
  }
}

function toData(texts: SecretTexts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  )
}

function uidsOf(owners: readonly OwnerReference[]): string {
  return owners.map(({ uid }) => uid).join()
}
