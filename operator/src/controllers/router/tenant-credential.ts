import { KubeError, type OwnerReference } from '@tutti/kube'
import { isRefusal } from '../../runtime/refusal.ts'
import { TerminalError } from '../../runtime/terminal-error.ts'
import type { RouterTrouble } from './router-trouble.ts'

/** The part that gives namespaces their credential for the broker; AccountTenancy and ExternalTenancy are such. */
export interface Tenancy {
  ensureTenant(
    namespace: string,
    o: {
      /** It goes with the last of them. */
      readonly owners: readonly OwnerReference[]
      readonly signal: AbortSignal
    },
  ): Promise<{ readonly renewAtMs: number }>
}

/** True for what may go well the next time by itself. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof TerminalError) && !isRefusal(error)
}

/**
 * Tells what a failure to ensure a credential says of the router. Pure.
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
