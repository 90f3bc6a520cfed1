import { type Client, isNotFound, KubeError, keyOf, SECRET } from '@tutti/kube'
import { NATS_SECRETS } from '../../nats/nats-tenancy.ts'
import { isManaged } from '../../runtime/children.ts'
import { isRefusal } from '../../runtime/refusal.ts'
import { TerminalError } from '../../runtime/terminal-error.ts'
import type { RouterTrouble } from './router-states.ts'

/** What gives namespaces their credential for the broker; `NatsTenancy` does. */
export interface Tenancy {
  ensureTenant(
    namespace: string,
    o: { readonly signal: AbortSignal },
  ): Promise<{ readonly renewAtMs: number }>
}

/** Takes the credential of a namespace away, if it is the operator's. @throws KubeError */
export async function removeCredential(
  client: Client,
  namespace: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const key = { namespace, name: NATS_SECRETS.credentials }
  try {
    const secret = await client.get(SECRET, key, { signal })
    if (!isManaged(secret)) return
    const { uid, resourceVersion } = secret.metadata
    await client.delete(SECRET, keyOf(secret), { preconditions: { uid, resourceVersion }, signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

/** True for what may go well the next time, with nobody's help. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof TerminalError) && !isRefusal(error)
}

/**
 * What a failure to ensure a credential says of the router. Pure.
 *
 * @param isThere - there is a credential, be it one that should have been renewed.
 * @returns undefined if nothing: what serves goes on with the credential that it has, and the next try comes soon.
 */
export function toCredentialTrouble(error: unknown, isThere: boolean): RouterTrouble | undefined {
  if (isPassing(error) && isThere) return undefined
  const isKnown = error instanceof TerminalError || error instanceof KubeError
  const message = isKnown ? error.message : 'the credential for NATS cannot be made'
  if (!isPassing(error)) return { reason: 'CredentialMissing', message }
  return { reason: 'CredentialMissing', message: `not made yet, and tried again: ${message}` }
}
