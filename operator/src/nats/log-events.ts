import type { Logger } from '@tutti/chassis'
import type { RotationStep } from './signing-rotation.ts'
import type { StaleReason } from './user-credentials.ts'

export function keysMade(log: Logger, secret: string): void {
  log.info('nats keys made', { secret })
}

export function signingKeyRotated(log: Logger, step: RotationStep): void {
  log.info('nats signing key rotated', { step })
}

export function credentialIssued(log: Logger, namespace: string, why: StaleReason): void {
  log.info('nats credential issued', { namespace, why })
}
