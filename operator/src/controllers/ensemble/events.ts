import type { Condition } from '@tutti/api'
import type { KubeObject } from '@tutti/kube'
import type { EventInput } from '../../runtime/events.ts'

/** Something in the manifest is odd, and it is accepted all the same. */
export function hasWarning(regarding: KubeObject, note: string): EventInput {
  return { regarding, type: 'Warning', reason: 'Warning', action: 'Check', note }
}

/** The conditions that say that somebody must act, and how. */
export const BAD_OF_ENSEMBLE = [
  ['Accepted', 'False'],
  ['Degraded', 'True'],
] as const

/** They heal by themselves, or are told by another condition, or once where they are wrong. */
const QUIET: ReadonlySet<string> = new Set([
  'SchemaPending',
  'Pending',
  'EarlierGenerationServed',
  'RouterSettingsInvalid',
])

/** Writes the text that is told of a condition that went bad; undefined if nothing is told. */
export function eventTextOf({ reason, message }: Condition): string | undefined {
  return QUIET.has(reason) ? undefined : `${reason} ${message}`
}
