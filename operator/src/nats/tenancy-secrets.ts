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

/** The names of the Secrets for NATS. */
export const NATS_SECRETS = {
  /** Secret of the keys, in the operator's namespace. It is made only once, and not again while the Secret `server` exists. */
  keys: 'tutti-nats-keys',
  /** Secret of the files with which the servers start, in the operator's namespace. It is made from the keys. */
  server: 'tutti-nats-server',
  /** Secret of a namespace's credential, in that namespace. */
  credentials: 'tutti-nats',
} as const

/** The calls of a client that Secrets need. */
export type SecretClient = Pick<Client, 'get' | 'create' | 'mergePatch'>

/** A Secret of the server, with its texts decoded. */
export interface FoundSecret {
  readonly key: ObjectKey
  readonly resourceVersion: string
  readonly texts: SecretTexts
  readonly annotations: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly owners: readonly OwnerReference[]
  /** True if the Secret has the operator's label. */
  readonly isOurs: boolean
}

/** A desired Secret. */
export interface DesiredSecret {
  readonly key: ObjectKey
  /** Label `component`: `nats` for a Secret of the servers, `credentials` for a namespace's, which is part of its router set. */
  readonly component: 'nats' | 'credentials'
  readonly texts: SecretTexts
  /**
   * Owners of the Secret, which is deleted with the last of them. Absent: a new Secret has none, an existing one keeps its
   * owners.
   */
  readonly owners?: readonly OwnerReference[]
  /** Labels in addition to those of all Secrets. */
  readonly labels?: Readonly<Record<string, string>>
}

/** The parts of a desired Secret that may differ from one that is there. */
type Content = Pick<DesiredSecret, 'texts' | 'owners' | 'labels'>

/** Writes the name of a Secret for messages: `Secret "namespace/name"`. */
export function nameOf(key: ObjectKey): string {
  return `Secret "${key.namespace}/${key.name}"`
}

/** Reads a Secret from the server. @returns undefined if there is none. @throws KubeError */
export async function findSecret(
  client: SecretClient,
  key: ObjectKey,
  o: CallOptions,
): Promise<FoundSecret | undefined> {
  const secret = await unlessNotFound(client.get(SECRET, key, o))
  return secret && toFound(key, secret)
}

/** Creates a Secret. @returns the new Secret, or the present one if it already exists. @throws KubeError */
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

/**
 * Creates the Secret, or replaces its content if it differs.
 *
 * @throws KubeError; TerminalError if the Secret differs and lacks the operator's label.
 */
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

/**
 * Replaces all texts of a Secret, and its owners if `owners` is given. It adds `labels` to the present ones.
 *
 * @throws KubeError; it is a Conflict if the Secret changed since it was read.
 */
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

/** True if a Secret needs no write. Owners are not compared if the Secret lacks the operator's label. */
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
