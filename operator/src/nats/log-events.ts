import type { Logger } from '@tutti/chassis'
import type { RotationStep } from './signing-rotation.ts'
import type { StaleReason } from './user-credentials.ts'

export function keysMade(log: Logger, secret: string): void {
  log.info('nats keys made', { secret })
}

export function signingKeyRotated(log: Logger, step: RotationStep): void {
  log.info('nats signing key rotated', { step })
}

/** Logs that a requested rotation step is refused. It is an error because a person must change the request. */
export function rotationRefused(log: Logger, why: string): void {
  log.error('nats signing key rotation refused', { why })
}

export function credentialIssued(log: Logger, namespace: string, why: StaleReason): void {
  log.info('nats credential issued', { namespace, why })
}

export function accountsChanged(log: Logger, updated: number, removed: number): void {
  log.info('nats accounts told', { updated, removed })
}

export function serversReloaded(log: Logger, servers: number): void {
  log.debug('nats servers reloaded', { servers })
}

export function serversUnreachable(log: Logger, error: unknown): void {
  log.warn('nats servers not reached', { error })
}
