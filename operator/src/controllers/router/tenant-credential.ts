import { KubeError, type OwnerReference } from '@tutti/kube'
import { isRefusal } from '../../runtime/refusal.ts'
import { TerminalError } from '../../runtime/terminal-error.ts'
import type { RouterTrouble } from './router-trouble.ts'

/** The part that gives namespaces their credentials for NATS. AccountTenancy and ExternalTenancy have it. */
export interface Tenancy {
  ensureTenant(
    namespace: string,
    o: {
      /** Owners of the credential's Secret, which is deleted with the last of them. */
      readonly owners: readonly OwnerReference[]
      readonly signal: AbortSignal
    },
  ): Promise<{ readonly renewAtMs: number }>
}

/** True for an error that may pass at the next try without a person. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof TerminalError) && !isRefusal(error)
}

/**
 * Turns an error of `ensureTenant` into a trouble of the router. Pure.
 *
 * @param isThere - true if the namespace has a credential, even one that is due for renewal.
 * @returns undefined if a credential exists and the error may pass: routers use the present credential until the next try.
 */
export function toCredentialTrouble(error: unknown, isThere: boolean): RouterTrouble | undefined {
  if (isPassing(error) && isThere) return undefined
  const isKnown = error instanceof TerminalError || error instanceof KubeError
  const message = isKnown ? error.message : 'the credential for NATS cannot be made'
  if (!isPassing(error)) return { reason: 'CredentialMissing', message }
  return { reason: 'CredentialMissing', message: `not made yet, and tried again: ${message}` }
}
